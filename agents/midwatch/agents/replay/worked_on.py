"""Worked on: what shows that a saved log's last failure ended nothing, other than its many lines. Pure."""

from __future__ import annotations

from midwatch.agents.replay.counted_on import counts_on
from midwatch.agents.replay.finite_again import is_finite_again
from midwatch.agents.replay.imported_later import imported_later
from midwatch.agents.replay.log_files import LogFile
from midwatch.agents.replay.resumed_records import resumes_records
from midwatch.agents.replay.work_again import works_again


def worked_on(file: LogFile, last: int) -> bool:
    """Whether another start's work, the missing module, or whole losses stand behind line `last`.

    Raises OSError if the file cannot be read.
    """
    return (
        works_again(file, last)
        or imported_later(file, last)
        or is_finite_again(file, last)
        or counts_on(file, last)
        or resumes_records(file, last)
    )
