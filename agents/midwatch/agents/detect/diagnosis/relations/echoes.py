"""Echoes: failures of a process that was ending for another reason, and what srun cleaned up. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate, speaker
from midwatch.agents.detect.line_order import FirstAndLast, earlier, in_order
from midwatch.streams.records import Hit

PEER_LEFT = ("nccl_remote_error", "nccl_remote_error_raised")
"""Rules by which NCCL says that a peer is gone. Behind them a process ends itself, maybe by a crash."""
_OF_AN_INTERRUPT = ("exception", "communication")
"""What a program raises that is interrupted while it waits for others, or that lets go of them."""
_ENDED_BY_A_SIGNAL = "deepspeed_terminated"
"""What a launcher says that a person interrupted, too. A scheduler may interrupt a job, and says more."""
_KILLS_ITS_RANKS = "deepspeed_killing"
"""A launcher's notice on what it does. It does not say why, so a later line may still be the first report."""
_ENDED_BY_ITSELF = re.compile(
    r"\bsrun: error: \S+: tasks? [\d,-]+:"
    r" (?:Aborted|Segmentation fault|Bus error|Floating point exception|Illegal instruction)\b"
    r"|\bapplication called MPI_Abort\(|\bMPI_ABORT was invoked on rank\b"
)
"""What a task brings on itself: such a signal, or MPI_Abort. SIGKILL and SIGTERM come from somebody else."""


_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]iB)")
_FAR_BEYOND = 4
"""No tensor asks for so many times a card's memory, unless a broken collective left its size to chance."""


def without_echoes(candidates: Sequence[RootCandidate]) -> list[RootCandidate]:
    """The candidates, with each line set aside that only shows how another failure ended its process."""
    srun = _Srun([candidate.hit for candidate in candidates])
    left = [
        candidate if candidate.set_aside else _judged(candidate, srun.cleaned_up(candidate.hit))
        for candidate in candidates
    ]
    first: dict[tuple[str, str], Hit] = {}
    reported: dict[tuple[str, str], Hit] = {}
    for hit in sorted((each.hit for each in left if not each.set_aside), key=in_order):
        if hit.rule != _KILLS_ITS_RANKS:
            first.setdefault(hit.line.file, hit)
        if hit.role == "consequence" and (not hit.fallback or hit.rule in PEER_LEFT):
            reported.setdefault(hit.line.file, hit)
    return [
        each if each.set_aside else _judged(each, _echo(each.hit, first, reported.get(each.hit.line.file)))
        for each in left
    ]


def _judged(candidate: RootCandidate, reason: NotRoot | None) -> RootCandidate:
    return candidate if reason is None else replace(candidate, reason=reason)


def _echo(hit: Hit, first: dict[tuple[str, str], Hit], reported: Hit | None) -> NotRoot | None:
    """Why a cause is an echo of what was reported before, or of an interrupt.

    A crash is, and so is an exception of a program that somebody interrupted. Behind a collective that broke,
    a card's memory is asked for the size that its buffer happened to hold.
    """
    if reported is not None and _of_a_garbled_size(hit, reported):
        return NotRoot("echo of a report", reported.line)
    if not hit.fallback or hit.role != "cause":
        return None
    if hit.error_type == "native_crash":
        behind = reported is not None and earlier(reported.line, hit.line)
        return NotRoot("echo of a report", reported.line) if reported is not None and behind else None
    start = first.get(hit.line.file, hit)
    interrupted = start.subsystem == "user" and speaker(start) == speaker(hit)
    follows = hit.error_type in _OF_AN_INTERRUPT or hit.rule == _ENDED_BY_A_SIGNAL
    if follows and interrupted and earlier(start.line, hit.line):
        return NotRoot("echo of an interrupt", start.line)
    return None


def _of_a_garbled_size(hit: Hit, reported: Hit) -> bool:
    size, capacity = (_bytes(hit.captures.get(name, "")) for name in ("size", "capacity"))
    garbled = hit.error_type == "oom" and capacity > 0 and size > _FAR_BEYOND * capacity
    return garbled and reported.subsystem == "distributed" and earlier(reported.line, hit.line)


def _bytes(words: str) -> float:
    found = _SIZE.fullmatch(words)
    return float(found[1]) * _UNITS[found[2]] if found else 0.0


class _Srun:
    """What srun itself ended: it cancels the step or kills its tasks after one of them failed.

    It also does so after a person interrupted srun at its terminal, or a task called the step off.
    """

    def __init__(self, hits: Sequence[Hit]) -> None:
        told = [hit for hit in hits if hit.subsystem in ("slurm", "user") and hit.role == "consequence"]
        crashed = [hit for hit in hits if _ENDED_BY_ITSELF.search(hit.line.text)]
        failed = [*crashed, *(hit for hit in told if "task" in hit.captures)]
        self._reasons = FirstAndLast(
            [
                *failed,
                *(hit for hit in told if hit.error_type == "user_interrupt" or "called_off" in hit.captures),
            ]
        )
        self._aborts = FirstAndLast(hit for hit in told if "aborted" in hit.captures)
        self._left = FirstAndLast(
            hit for hit in told if "task" in hit.captures and "exit_code" in hit.captures
        )
        self._steps = _steps_ended_by_srun([hit for hit in told if hit.subsystem == "slurm"], failed)

    def cleaned_up(self, hit: Hit) -> NotRoot | None:
        """Why nobody else cancelled the step or killed its tasks; None if somebody else may have."""
        killed = hit.error_type == "host_oom" and hit.fallback
        if hit.subsystem != "slurm" or not (killed or hit.error_type == "cancelled"):
            return None
        step = self._steps.get(hit.captures.get("id", ""))
        shown = step or self._reasons.before(hit.line) or (self._late(hit) if killed else None)
        return None if shown is None else NotRoot("srun cleaned up", shown.line)

    def _late(self, killed: Hit) -> Hit | None:
        """The task that had left by itself, where srun told of its abort first and of that task last."""
        return self._left.behind(killed.line) if self._aborts.before(killed.line) is not None else None


def _steps_ended_by_srun(of_srun: Sequence[Hit], of_tasks: Sequence[Hit]) -> dict[str, Hit]:
    """The steps that srun itself ended, each with its line on that: it had reported a failed task before.

    If somebody else had ended the step before, srun would have reported that. The node's line about the
    cancel goes into the tasks' output, so neither its place nor its printed second shows the order.
    """
    first: dict[tuple[str, str], int] = {}
    for hit in of_tasks:
        first[hit.line.file] = min(hit.line.number, first.get(hit.line.file, hit.line.number))
    aborted: set[tuple[str, str]] = set()
    steps: dict[str, Hit] = {}
    for hit in sorted(of_srun, key=lambda each: each.line.number):
        file = hit.line.file
        failed = first.get(file, hit.line.number) < hit.line.number
        if hit.captures.get("ended") and failed and file not in aborted:
            steps.setdefault(hit.captures["ended"], hit)
        if "aborted" in hit.captures:
            aborted.add(file)
    return steps
