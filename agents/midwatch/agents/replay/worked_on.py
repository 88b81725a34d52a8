"""Worked on: what shows that a saved log's last failure ended nothing, other than its many lines. Pure."""

from __future__ import annotations

from midwatch.agents.replay.counted_on import counts_on
from midwatch.agents.replay.finite_again import is_finite_again
from midwatch.agents.replay.imported_later import imported_later
from midwatch.agents.replay.log_files import LogFile
from midwatch.agents.replay.resumed_records import resumes_records
from midwatch.agents.replay.work_again import works_again


def worked_on(file: LogFile, last: int, *, ended: bool = False) -> bool:
    """Whether another start's work, the missing module, whole losses or a count stand behind line `last`.

    `ended`: somebody outside said that the job or a process has ended. Raises OSError.
    """
    return (
        works_again(file, last)
        or imported_later(file, last)
        or is_finite_again(file, last)
        or counts_on(file, last, ended=ended)
        or (not ended and resumes_records(file, last))
    )
