"""Which job of a scheduler wrote a log: what its path and its lines tell of the job's id."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from midwatch.agents.replay.reading.log_files import LogFile

_VARIABLE = r"\W{0,3}[=:]\W{0,2}"
_TASK = re.compile(
    rf"SLURM_ARRAY_JOB_ID{_VARIABLE}(\d+)(?s:.{{1,400}}?)SLURM_ARRAY_TASK_ID{_VARIABLE}(\d+)", re.ASCII
)
_ID = re.compile(
    rf"(?:SLURM_JOB_?ID{_VARIABLE}|\*\*\* (?:JOB|STEP) |\bStepId=|\bJobId=|\bsrun: [Jj]ob "
    r"|\b[Jj]ob ?[Ii][Dd]: ?)(\d+(?:_\d+)?)"
    r"|\b(raysubmit_\w+)",
    re.ASCII,
)


def clues_of(name: str | None, files: Sequence[LogFile]) -> Iterator[str]:
    """Texts that may hold the job's id, the surest first. It reads the files when it comes to their lines.

    `name`: what the caller calls the job. Of several ids in the lines the last one is first, because the last
    start counts. `sbatch` in the log tells of another job, so its answer is none.

    Raises OSError.
    """
    if name:
        yield name
    for file in files:
        yield from reversed(PurePath(file.path).parts)
    for file in files:
        text = (file.head() + b"\n" + file.tail()).decode("utf-8", "replace")
        yield from (f"{job}_{task}" for job, task in reversed(_TASK.findall(text)))
        yield from (number or submission for number, submission in reversed(_ID.findall(text)))
