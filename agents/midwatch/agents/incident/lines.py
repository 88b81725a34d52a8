"""What the lines say: progress, causes, consequences, success. Resent lines change nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from midwatch.agents.incident.attempts import meet
from midwatch.agents.incident.settling import end, revise, suspect, withdraw
from midwatch.agents.incident.sight import forget_silence
from midwatch.agents.incident.state import NodeState
from midwatch.agents.incident.turn import Turn
from midwatch.streams.foreign import PREFIX as FOREIGN
from midwatch.streams.records import Held, Hit, HitCount, Hits, Phase, Progress

_HELD_PER_RULE_AND_RANK = 3
_HELD = 512
_COUNTS = 256
_GENERATIONS = 1024
_STEPS_TO_WITHDRAW = 2
_AHEAD = 60.0
_LATE = 7 * 86_400.0  # a broker may be away over a weekend


@dataclass(frozen=True, slots=True)
class Step:
    """One progress line. `step` -1: the line tells of the phase alone."""

    path: str
    number: int
    time: float
    step: int
    phase: Phase
    total: int | None
    loss: str


@dataclass(frozen=True, slots=True)
class NodeClock:
    """How a node's times become comparable with others'. Seconds.

    `offset` is how far its clock was ahead of the broker's, as far as beats have told; `logged` is when the
    chunk of the lines was appended, 0 where nobody noted it.
    """

    offset: float
    logged: float

    def corrected(self, time: float) -> float:
        """When a line was written. A chunk holds lines of the time before it was appended: what lies ahead
        of that, or weeks behind, comes from a clock whose error is not yet known (before the first beat,
        after a jump), and then the append time stands for it."""
        at = time - self.offset
        if self.logged and not self.logged - _LATE <= at <= self.logged + _AHEAD:
            return self.logged
        return at


def on_hits(turn: Turn, record: Hits) -> None:
    """What match found in one chunk."""
    origin = record.origin
    current = meet(turn, origin.incarnation, nodes=origin.nodes)
    node = turn.nodes.get(origin.node, NodeState())
    turn.nodes[origin.node] = replace(node, judged=_raised(node.judged, record.ends))
    if not current or turn.state.commanded:
        # Another attempt's lines, or what our own command makes the job print while it dies.
        return
    turn.set(bundle=record.bundle)
    if origin.shipper.startswith(FOREIGN):
        name = origin.shipper.removeprefix(FOREIGN)
        turn.open_finding(
            "no_beats", f"its lines come by {name}, which gives no beats: no stall can be found"
        )
    fresh = False
    clock = NodeClock(max(node.offsets, default=0.0), record.logged_ms / 1000)
    for line in _in_order(record, node.judged, clock):
        if isinstance(line, Step):
            _progress(turn, origin.node, line)
        else:
            fresh = True
            _hold(turn, line, record.logged_ms)
    if fresh:
        turn.set(counts=(*turn.state.counts, *record.counts)[:_COUNTS])
    incident = turn.state.incident
    if incident is not None and incident.state == "ended":
        end(turn)
    revise(turn)


def _in_order(record: Hits, judged: Mapping[str, int], clock: NodeClock) -> Iterator[Step | Hit]:
    """The lines not judged before, by corrected time; those of one file stay in the file's order."""
    files: dict[str, list[Step | Hit]] = {}
    for column in record.progress:
        mark = judged.get(column.generation, -1)
        lines = files.setdefault(column.path, [])
        lines.extend(_step(column, i, clock) for i, ended in enumerate(column.ends) if ended > mark)
    for hit in record.hits:
        if hit.end > judged.get(hit.generation, -1):
            corrected = replace(hit, line=replace(hit.line, time=clock.corrected(hit.line.time)))
            files.setdefault(hit.line.path, []).append(corrected)
    timed: list[tuple[float, int, Step | Hit]] = []
    for lines in files.values():
        latest = 0.0
        for line in sorted(lines, key=_number):
            latest = max(latest, _time(line))
            timed.append((latest, len(timed), _at(line, latest)))
    for _, _, line in sorted(timed, key=lambda entry: entry[:2]):
        yield line


def _step(column: Progress, index: int, clock: NodeClock) -> Step:
    return Step(
        path=column.path,
        number=column.numbers[index],
        time=clock.corrected(column.times[index]),
        step=column.steps[index],
        phase=column.phase,
        total=column.total,
        loss=column.losses[index] if index < len(column.losses) else "",
    )


def _number(line: Step | Hit) -> int:
    return line.number if isinstance(line, Step) else line.line.number


def _time(line: Step | Hit) -> float:
    return line.time if isinstance(line, Step) else line.line.time


def _at(line: Step | Hit, time: float) -> Step | Hit:
    return (
        replace(line, time=time)
        if isinstance(line, Step)
        else replace(line, line=replace(line.line, time=time))
    )


def _raised(judged: Mapping[str, int], ends: Mapping[str, int]) -> dict[str, int]:
    raised = dict(judged)
    for generation, offset in ends.items():
        raised[generation] = max(offset, raised.pop(generation, -1))
    return dict(list(raised.items())[-_GENERATIONS:])


def _hold(turn: Turn, hit: Hit, logged_ms: int) -> None:
    if hit.role == "success":
        # What stood against the job before it said that it is done did not end it.
        turn.set(succeeded=True, held=())
        if turn.running():
            withdraw(turn, "the job says that it is done")
        return
    if hit.excuses is not None:
        _excuse(turn, hit)
    state = turn.state
    if hit.role not in ("cause", "consequence"):
        return
    line = hit.line
    alike = sum(
        h.hit.rule == hit.rule and h.hit.line.rank == line.rank and h.hit.line.path == line.path
        for h in state.held
    )
    if alike >= _HELD_PER_RULE_AND_RANK or len(state.held) >= _HELD:
        more = HitCount(hit.rule, line.rank, 1, line.number, line.number, line.path)
        turn.set(counts=(*state.counts, more)[:_COUNTS])
        return
    turn.set(held=(*state.held, Held(hit, state.step if state.step is not None else -1, logged_ms)))
    suspect(turn, hit)


def _excuse(turn: Turn, hit: Hit) -> None:
    """What was raised while an exception was handled tells that the exception itself did no harm."""
    place = (hit.line.path, hit.excuses)
    kept = tuple(h for h in turn.state.held if (h.hit.line.path, h.hit.line.number) != place)
    if len(kept) == len(turn.state.held):
        return
    turn.set(held=kept)
    incident = turn.state.incident
    if incident is not None and incident.state == "suspected" and not kept:
        withdraw(turn, "the exception was handled")


def _progress(turn: Turn, node: str, line: Step) -> None:
    state = turn.state
    forget_silence(turn)
    reached = state.step if state.step is not None else -1
    if line.step > reached:
        nodes: tuple[str, ...] = (node,)
    elif node not in state.progress_nodes and (line.step == reached or not state.progress_nodes):
        nodes = (*state.progress_nodes, node)
    else:
        nodes = state.progress_nodes
    turn.set(
        phase=line.phase,
        step=max(line.step, reached) if line.step >= 0 else state.step,
        total=line.total if line.total is not None else state.total,
        progress_nodes=nodes,
    )
    if line.step >= 0:
        _went_on(turn, line)
        _loss(turn, line)


def _after(line: Step, held: Held) -> bool:
    """Whether the progress was printed after the line held against the job."""
    if line.path == held.hit.line.path:
        return line.number > held.hit.line.number
    return line.time > held.hit.line.time


def _still_diverged(line: Step, held: Held) -> bool:
    """A run goes on with broken numbers as well as with good ones: only a finite loss speaks for it."""
    if held.hit.error_type != "numerical_instability":
        return False
    try:
        return not math.isfinite(float(line.loss))
    except ValueError:
        return True


def _went_on(turn: Turn, line: Step) -> None:
    """A step after a suspicion: the line did not end the job once the step passes two beyond it."""
    kept = []
    for held in turn.state.held:
        if not _after(line, held):
            kept.append(replace(held, step=max(held.step, line.step)))
        elif line.step < held.step + _STEPS_TO_WITHDRAW or _still_diverged(line, held):
            kept.append(held)
    turn.set(held=tuple(kept))
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


def _loss(turn: Turn, line: Step) -> None:
    try:
        loss = float(line.loss)
    except ValueError:
        return
    losses, spike = turn.spikes.observe(turn.state.losses, line.step, loss)
    turn.set(losses=losses)
    if spike is None:
        return
    numbers = {"step": str(line.step), "loss": line.loss, "usual": f"{spike.usual:.6g}"}
    place = f"{line.path}:{line.number}"
    if spike.open:
        detail = f"the loss is {line.loss} at step {line.step} ({place}); lately it was {spike.usual:.4g}"
        turn.open_finding("loss_spike", detail, quantities=numbers)
    else:
        turn.clear_finding("loss_spike", f"the loss is back at {line.loss} at step {line.step} ({place})")
