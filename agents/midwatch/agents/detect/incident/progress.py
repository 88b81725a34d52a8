"""Progress: how far the job has come. Later progress also clears lines that were suspected to end the job."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from midwatch.agents.detect.incident.detecting import Watch
from midwatch.agents.detect.incident.quorum import forget_silence
from midwatch.agents.detect.incident.resumption import judge
from midwatch.agents.detect.incident.settling import withdraw
from midwatch.agents.detect.incident.turn import Turn
from midwatch.agents.detect.line_order import earlier
from midwatch.rules.detectors.base import StepSeen
from midwatch.streams.records import Held, Line, Phase

_STEPS_TO_WITHDRAW = 2


class ProgressLine(NamedTuple):
    """One progress line.

    `step` -1: the line shows only the phase. Its `count` then rises with each round of a loop: a progress
    bar, a batch of an epoch, a clock.
    """

    rule: str
    node: str
    path: str
    number: int
    time: float
    step: int
    phase: Phase
    total: int | None
    loss: str
    count: str = ""  # type: ignore[assignment]  # it hides the method of tuples, which nobody calls
    grad_norm: str = ""
    line: Line | None = None

    @property
    def file(self) -> tuple[str, str]:
        """The file (node and path) in which its number counts."""
        return (self.node, self.path)


def go_on(turn: Turn, node: str, lines: Sequence[ProgressLine]) -> None:
    """Fold progress lines of one node, in order, with no other line between them.

    A chunk holds hundreds of them. So the fold writes step, phase and losses into the state only once, after
    the last line. No effect of a single step reads those fields.
    """
    if not lines:
        return
    forget_silence(turn)
    state = turn.state
    step, phase, total = state.step, state.phase, state.total
    nodes, printed, watch = state.progress_nodes, state.progress_line, Watch(turn)
    first, interval = state.resumption.first_step, state.resumption.interval
    for line in lines:
        reached = step if step is not None else -1
        if line.step > reached:
            nodes = (node,)
        elif node not in nodes and (line.step == reached or not nodes):
            nodes = (*nodes, node)
        if line.line is not None:
            printed = replace(line.line, time=line.time)
        phase = line.phase
        total = line.total if line.total is not None else total
        if line.step >= 0:
            if line.phase == "training":
                first = line.step if first is None else first
                interval = line.step - reached if line.step > reached >= 0 else interval
            step = max(line.step, reached)
            if turn.state.held or turn.state.noted or turn.state.incident is not None:
                _went_on(turn, line)
            watch.show(_seen(line, turn.now_ms))
        elif line.count and turn.state.held:
            _counted_on(turn, line)
    turn.set(step=step, phase=phase, total=total, progress_nodes=nodes, progress_line=printed)
    watch.keep()
    turn.set(resumption=replace(turn.state.resumption, first_step=first, interval=interval))
    judge(turn)


def _still_diverged(line: ProgressLine, held: Held) -> bool:
    """Whether broken numbers remain. A run goes on with them, so only a finite loss shows their end."""
    if held.hit.error_type != "numerical_instability":
        return False
    try:
        return not math.isfinite(float(line.loss))
    except ValueError:
        return True


def _held_after_step(line: ProgressLine, held: Iterable[Held]) -> Iterator[Held]:
    for each in held:
        if not earlier(each.hit.line, line):
            yield replace(each, step=line.step) if line.step > each.step else each
        elif line.step < each.step + _STEPS_TO_WITHDRAW or _still_diverged(line, each):
            yield each


def _held_after_count(line: ProgressLine, count: float, held: Iterable[Held]) -> Iterator[Held]:
    for each in held:
        if not earlier(each.hit.line, line) or _still_diverged(line, each) or (each.count or count) > count:
            yield each
        elif each.count is None:
            yield replace(each, count=count)
        elif count > each.count and each.rises + 1 < _STEPS_TO_WITHDRAW:
            yield replace(each, count=count, rises=each.rises + 1)
        elif count == each.count:
            yield each


def _counted_on(turn: Turn, line: ProgressLine) -> None:
    """Drop held lines after which a loop without steps went on: its count rose twice after the line."""
    try:
        count = float(line.count)
    except ValueError:
        return
    held = turn.state.held
    kept = tuple(_held_after_count(line, count, held))
    if kept == held:
        return
    turn.set(held=kept)
    incident = turn.state.incident
    if incident is not None and incident.state == "suspected" and not kept:
        withdraw(turn, "the job went on: its loop counts on")


def _went_on(turn: Turn, line: ProgressLine) -> None:
    """Drop held lines after which the job went on: its step is two beyond the step of the line."""
    held = turn.state.held
    kept = tuple(_held_after_step(line, held)) if held else ()
    if kept != held:
        turn.set(held=kept)
    noted = turn.state.noted
    if noted and (still := tuple(_held_after_step(line, noted))) != noted:
        turn.set(noted=still)
    incident = turn.state.incident
    ended = turn.state.ended_ms is not None and turn.state.stalled is None
    if incident is None or ended:
        # The report of an end may overtake the lines, so this step was made before the end.
        return
    if turn.state.stalled is not None and turn.state.scheduler is None:
        if line.step >= (incident.verdict.step or 0) + _STEPS_TO_WITHDRAW:
            withdraw(turn, f"the job went on: step {line.step}")
    elif incident.state == "suspected" and not kept:
        withdraw(turn, f"the job went on: step {line.step}")


def _seen(line: ProgressLine, now_ms: int) -> StepSeen:
    return StepSeen(
        now_ms, line.node, line.path, line.number, line.step, line.phase, line.loss, line.grad_norm
    )
