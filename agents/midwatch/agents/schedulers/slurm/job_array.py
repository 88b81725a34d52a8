"""The tasks of a job array: those that `sbatch --array` names, and what each learns of the array. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from midwatch.agents.schedulers.slurm.sbatch_argv import Option, split
from midwatch.streams.errors import UsageError

TASK = "%a"
"""The place of a task's index in a path or a name, as SLURM writes it in `--output`."""

MOST = 10_000
"""Tasks of one array, at most. Each is a job of its own to midwatch."""

_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


def array_given(
    options: Sequence[Option], environment: Mapping[str, str], script: Sequence[Option]
) -> str | None:
    """The value of `--array` that sbatch would obey: of its line, SBATCH_ARRAY_INX or the script."""
    of_line, of_script = (
        [option.value for option in given if option.name in ("array", "a")] for given in (options, script)
    )
    for values in (of_line, [environment.get("SBATCH_ARRAY_INX")], of_script):
        if values and values[-1]:
            return values[-1]
    return None


def indices(text: str) -> tuple[int, ...]:
    """The indices that a value such as `1-9:2,12%4` names, each once, lowest first.

    Raises:
        UsageError: it names none, or more than `MOST`, or is no such value.
    """
    parts = [_PART.fullmatch(part.strip()) for part in text.partition("%")[0].split(",")]
    found: set[int] = set()
    for part in parts:
        if part is None:
            raise _wrong(text, "it names no indices", "write for example --array=1-8 or --array=1,3,5%2")
        first, step = int(part[1]), int(part[3] or 1)
        last = int(part[2]) if part[2] else first
        if step == 0 or (last - first) // step >= MOST:
            raise _wrong(text, f"midwatch watches at most {MOST} tasks of an array", "submit it in parts")
        found.update(range(first, last + 1, step))
    if not found or len(found) > MOST:
        raise _wrong(text, f"midwatch watches 1 to {MOST} tasks of an array", "submit it in parts")
    return tuple(sorted(found))


def of_whole_array(argv: Sequence[str]) -> dict[str, str]:
    """What SLURM tells each task of this sbatch line about the array; empty if the line submits none.

    A task that starts again is an array of one for SLURM. Its script may still count the tasks.
    """
    text = array_given(split(argv[1:])[0], {}, ())
    if text is None:
        return {}
    tasks = indices(text)
    gaps = {later - earlier for earlier, later in pairwise(tasks)}
    return {
        "SLURM_ARRAY_TASK_COUNT": str(len(tasks)),
        "SLURM_ARRAY_TASK_MIN": str(tasks[0]),
        "SLURM_ARRAY_TASK_MAX": str(tasks[-1]),
        "SLURM_ARRAY_TASK_STEP": str(min(gaps) if len(gaps) == 1 else 1),
    }


def of_task(text: str, task: int | str) -> str:
    """The text with the task's index in its place."""
    return text.replace(TASK, str(task))


def _wrong(text: str, what: str, remedy: str) -> UsageError:
    return UsageError(what, where=f"--array={text}", remedy=remedy)
