"""Worked on: what shows that a saved log's last failure ended nothing, other than its many lines. Pure."""

from __future__ import annotations

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.went_on.begun_again import begun_again
from midwatch.agents.replay.went_on.counted_on import counts_on
from midwatch.agents.replay.went_on.finite_again import is_finite_again
from midwatch.agents.replay.went_on.imported_later import imported_later
from midwatch.agents.replay.went_on.next_trial import next_trial_began
from midwatch.agents.replay.went_on.resumed_records import resumes_records
from midwatch.agents.replay.went_on.served_on import served_on
from midwatch.agents.replay.went_on.went_as_before import went_as_before
from midwatch.agents.replay.went_on.work_again import works_again


def worked_on(file: LogFile, last: int, *, ended: bool = False) -> bool:
    """Whether work, the missing module, whole losses, a count, a trial or a run stand behind line `last`.

    So may good answers of a server. `ended`: somebody outside said that the job or a process has ended.
    Raises OSError.
    """
    return (
        works_again(file, last)
        or imported_later(file, last)
        or is_finite_again(file, last)
        or counts_on(file, last, ended=ended)
        or next_trial_began(file, last)
        or begun_again(file, last)
        or (not ended and any(each(file, last) for each in (resumes_records, served_on, went_as_before)))
    )
