"""What progress lines say: how far the job has come, and that what stood against it did not end it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from midwatch.agents.detect.incident.quorum import forget_silence
from midwatch.agents.detect.incident.settling import withdraw
from midwatch.agents.detect.incident.turn import Turn
from midwatch.agents.detect.line_order import earlier
from midwatch.rules.detectors.loss_spike import LossWindow
from midwatch.streams.records import Held, Line, Loop, Phase, Shows

_STEPS_TO_WITHDRAW = 2
_RISES = 2
"""So often a count rises before a loop is known to go round."""
_LOOPS = 32


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """One progress line. `step` -1: the line tells of the phase alone, and with `count` that its loop goes
    round: a bar, an epoch, a batch behind its epoch, a clock that is printed with each event. `shows`: see
    `midwatch.rules.model.Shows`; `life`: that the job printed something."""

    rule: str
    node: str
    path: str
    number: int
    time: float
    step: int
    phase: Phase
    total: int | None
    loss: str
    count: str = ""
    line: Line | None = None
    shows: Shows = "step"

    @property
    def kind(self) -> str:
        """Numbers of two kinds are never compared: each rule counts its own, with or without an epoch."""
        return f"{self.rule}/{self.count.count(':')}"

    @property
    def file(self) -> tuple[str, str]:
        """Where its number counts."""
        return (self.node, self.path)


def go_on(turn: Turn, node: str, lines: Sequence[ProgressLine]) -> None:
    """Progress lines of one node, in order, with no other line between them.

    A chunk holds hundreds of them, so what they say of the job is written into its state once, behind the
    last: nothing that a step sets off reads it.
    """
    if not lines:
        return
    if any(line.shows != "climb" for line in lines):
        forget_silence(turn)
    for line in lines:
        if not turn.state.trained:
            _shown_to_train(turn, line)
    state = turn.state
    step, phase, total = state.step, state.phase, state.total
    nodes, printed, losses = state.progress_nodes, state.progress_line, state.losses
    for line in lines:
        if line.shows == "climb":
            continue
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
            step = max(line.step, reached)
            _went_on(turn, line)
            losses = _loss(turn, losses, line)
        elif line.count and turn.state.held:
            _counted_on(turn, line)
    turn.set(step=step, phase=phase, total=total, progress_nodes=nodes, progress_line=printed, losses=losses)


def _shown_to_train(turn: Turn, line: ProgressLine) -> None:
    """Whether the line, or its count with those before it, shows that the run trains."""
    if line.shows == "life" or line.phase != "training":
        return
    at = _place(line)
    told = line.step >= 0 or line.loss != "" or (len(at) > 1 and at[-1] > 0)
    if line.shows == "training" or (told and line.shows == "step"):
        turn.set(trained=True, loops={})
    elif at:
        name = f"{line.kind} {line.node}:{line.path}"
        loops = dict(turn.state.loops)
        loop = _gone_round(loops.pop(name, None), at)
        if loop.rises >= _RISES:
            turn.set(trained=True, loops={})
        else:
            turn.set(loops=dict([*loops.items(), (name, loop)][-_LOOPS:]))


def _place(line: ProgressLine) -> tuple[float, ...]:
    """Where its loop is; nothing if the line gives no number."""
    try:
        at = tuple(float(part) for part in line.count.split(":"))
    except ValueError:
        return ()
    return at if all(math.isfinite(number) for number in at) else ()


def _gone_round(loop: Loop | None, at: tuple[float, ...]) -> Loop:
    """A lower number changes nothing: it is another loop's of the same kind, which prints less."""
    if loop is None:
        return Loop(at)
    return Loop(at, loop.rises + 1) if at > loop.at else loop


def _still_diverged(line: ProgressLine, held: Held) -> bool:
    """A run goes on with broken numbers as well as with good ones: only a finite loss speaks for it."""
    if held.hit.error_type != "numerical_instability":
        return False
    try:
        return not math.isfinite(float(line.loss))
    except ValueError:
        return True


def _standing(line: ProgressLine, held: Iterable[Held]) -> Iterator[Held]:
    for each in held:
        if not earlier(each.hit.line, line):
            yield replace(each, step=line.step) if line.step > each.step else each
        elif line.step < each.step + _STEPS_TO_WITHDRAW or _still_diverged(line, each):
            yield each


def _counting(line: ProgressLine, at: tuple[float, ...], held: Iterable[Held]) -> Iterator[Held]:
    for each in held:
        if not earlier(each.hit.line, line) or _still_diverged(line, each):
            yield each
            continue
        before = each.loops.get(line.kind)
        loop = _gone_round(before, at)
        if loop.rises < _RISES:
            yield each if loop == before else replace(each, loops={**each.loops, line.kind: loop})


def _counted_on(turn: Turn, line: ProgressLine) -> None:
    """A loop that prints no step goes on: it counted twice beyond where it was first seen behind the line."""
    at = _place(line)
    if not at:
        return
    held = turn.state.held
    kept = tuple(_counting(line, at, held))
    if kept == held:
        return
    turn.set(held=kept)
    incident = turn.state.incident
    if incident is not None and incident.state == "suspected" and not kept:
        withdraw(turn, "the job went on: its loop goes round")


def _went_on(turn: Turn, line: ProgressLine) -> None:
    """A step after a suspicion: the line did not end the job once the step passes two beyond it."""
    held = turn.state.held
    kept = tuple(_standing(line, held)) if held else ()
    if kept != held:
        turn.set(held=kept)
    noted = turn.state.noted
    if noted and (still := tuple(_standing(line, noted))) != noted:
        turn.set(noted=still)
    incident = turn.state.incident
    ended = turn.state.ended_ms is not None and turn.state.stalled is None
    if incident is None or ended:
        # Word of an end may overtake the lines: a step that comes now was made before it.
        return
    if turn.state.stalled is not None and turn.state.scheduler is None:
        if line.step >= (incident.verdict.step or 0) + _STEPS_TO_WITHDRAW:
            withdraw(turn, f"the job went on: step {line.step}")
    elif incident.state == "suspected" and not kept:
        withdraw(turn, f"the job went on: step {line.step}")


def _loss(turn: Turn, losses: LossWindow, line: ProgressLine) -> LossWindow:
    try:
        loss = float(line.loss)
    except ValueError:
        return losses
    losses, spike = turn.spikes.observe(losses, line.step, loss)
    if spike is None:
        return losses
    numbers = {"step": str(line.step), "loss": line.loss, "usual": f"{spike.usual:.6g}"}
    place = f"{line.path}:{line.number}"
    if spike.open:
        detail = f"the loss is {line.loss} at step {line.step} ({place}); lately it was {spike.usual:.4g}"
        turn.open_finding("loss_spike", detail, quantities=numbers)
    else:
        turn.clear_finding("loss_spike", f"the loss is back at {line.loss} at step {line.step} ({place})")
    return losses
