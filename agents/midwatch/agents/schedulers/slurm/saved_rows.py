"""The jobs of a saved record of SLURM, from the rows that sacct or scontrol printed of them. Pure.

A job has a row for each of its starts (`sacct -D`), and below it the rows of that start's steps. The last
start counts. Where SLURM has put the job back into its queue, the start before that has ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from midwatch.agents.schedulers.base import StartState
from midwatch.agents.schedulers.saved_job import FailedLastStep, SavedJob
from midwatch.agents.schedulers.slurm.text import job_state, whole_word

_REQUEUED = re.compile(r"(?i)requeued[ _]|requeued\Z")
_QUEUED_AGAIN = ("REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")
_TELLING = (
    "OUT_OF_MEMORY",
    "NODE_FAIL",
    "BOOT_FAIL",
    "LAUNCH_FAILED",
    "PREEMPTED",
    "TIMEOUT",
    "DEADLINE",
    "FAILED",
    "CANCELLED",
    "REVOKED",
    "COMPLETED",
)
"""Ends of the parts of a job, the most telling first."""
_SAYS_NOTHING = "extern"  # the step for processes that come by ssh


@dataclass(frozen=True, slots=True)
class SavedRow:
    """A row of a job, or of a part of it: a step (`batch`, `0`) or a component of a heterogeneous job (`+1`).

    `raw`: the number by which SLURM counts a task of an array. `restarts`: starts before this one. `word` may
    be cut by a narrow column.
    """

    job: str
    word: str
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    part: str = ""
    raw: str = ""
    restarts: int = 0

    def state(self) -> StartState:
        """Raises ValueError: the word is cut too short."""
        return job_state(whole_word(self.word), self.reason, self.exit_code, self.signal)


def jobs_in(rows: Sequence[SavedRow]) -> list[SavedJob]:
    """The jobs of these rows, in their order. Raises ValueError: a word is cut too short."""
    groups: dict[str, list[SavedRow]] = {}
    for row in rows:
        groups.setdefault(row.job, []).append(row)
    jobs = []
    for name, group in groups.items():
        state = _last_start(group)
        if state is not None:
            raw = next((row.raw for row in group if row.raw), "")
            names = (name, raw) if raw and raw != name else (name,)
            jobs.append(SavedJob("slurm", names, state, _failed_step(group, state)))
    return jobs


def _last_start(group: Sequence[SavedRow]) -> StartState | None:
    """The state of the job's last start. None where no row tells of it."""
    starts = [index for index, row in enumerate(group) if not row.part]
    below = group[starts[-1] + 1 :] if starts else group
    parts = [(row, row.state()) for row in below if row.part and row.part != _SAYS_NOTHING]
    if not starts:
        return min((state for _, state in parts), key=_rank, default=None)
    row = group[starts[-1]]
    state = row.state()
    if again := _again(row, state, earlier=len(starts) > 1):
        return again
    components = [part for each, part in parts if each.part.startswith("+") and "." not in each.part]
    state = min((state, *components), key=_rank)
    killed = next((each for each, part in parts if part.word == "OUT_OF_MEMORY"), None)
    if state.word == "FAILED" and killed is not None:
        reason = f"its step {killed.job}.{killed.part} ended OUT_OF_MEMORY"
        return replace(state, error_type="host_oom", reason=reason)
    return state


def _failed_step(group: Sequence[SavedRow], state: StartState) -> FailedLastStep | None:
    """The end of the last numbered step of a job that COMPLETED, if that step did not.

    The job has the code of its script, and that may end with 0 behind a failed srun. A step whose number a
    narrow column cut away has no place in their order.
    """
    own = max((index for index, row in enumerate(group) if not row.part), default=-1)
    below = group[own + 1 :]
    steps = sorted((row for row in below if row.part.isdecimal()), key=lambda row: int(row.part))
    if state.word != "COMPLETED" or not steps or any(row.part == "step" for row in below):
        return None
    last, word = steps[-1], steps[-1].state()
    if word.word not in ("FAILED", "OUT_OF_MEMORY"):
        return None
    reason = f"the job ended COMPLETED, but its last step {last.job}.{last.part} ended {word.word}"
    only = all(row.state().word != "COMPLETED" for row in steps)
    return FailedLastStep(replace(word, reason=reason), only)


def _rank(state: StartState) -> int:
    """What runs still comes first, then the most telling end."""
    return _TELLING.index(state.word) if state.word in _TELLING else -1


def _again(row: SavedRow, state: StartState, *, earlier: bool) -> StartState | None:
    """The end of a start that SLURM has queued or started again by itself; None if it did not."""
    flagged = state.word in _QUEUED_AGAIN or (
        state.kind in ("queued", "held") and _REQUEUED.search(row.reason)
    )
    begun = state.kind in ("queued", "held", "running") and (row.restarts or earlier)
    if not (flagged or begun):
        return None
    held = state.kind == "held" or bool(re.search(r"(?i)held", row.reason))
    how = "queued it again, and holds it" if held else "queued it again"
    if state.kind == "running":
        how = "started it again"
    why = f"{state.word}, {state.reason}" if state.reason else state.word
    return StartState("ended", "REQUEUED", "ended", reason=f"SLURM has already {how}: {why}")
