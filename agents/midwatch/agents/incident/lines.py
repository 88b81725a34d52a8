"""What the lines say: progress, causes, consequences, success. Resent lines change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from midwatch.agents.incident.attempts import meet
from midwatch.agents.incident.settling import end, revise, suspect, withdraw
from midwatch.agents.incident.sight import forget_silence
from midwatch.agents.incident.state import Held, NodeState
from midwatch.agents.incident.turn import Turn
from midwatch.streams.records import Hit, HitCount, Hits, Progress

_HELD_PER_RULE_AND_RANK = 3
_HELD = 512
_COUNTS = 256
_GENERATIONS = 1024
_STEPS_TO_WITHDRAW = 2


def on_hits(turn: Turn, record: Hits) -> None:
    """What match found in one chunk."""
    origin = record.origin
    current = meet(turn, origin.incarnation, nodes=origin.nodes)
    node = turn.nodes.get(origin.node, NodeState())
    judged = node.judged
    turn.nodes[origin.node] = replace(node, judged=_raised(judged, record.ends))
    if not current or turn.state.commanded:
        # Another attempt's lines, or what our own command makes the job print while it dies.
        return
    turn.set(bundle=record.bundle)
    offset = max(node.offsets, default=0.0)
    for column in record.progress:
        _progress(turn, origin.node, column, judged.get(column.generation, -1), offset)
    fresh = [hit for hit in record.hits if hit.end > judged.get(hit.generation, -1)]
    for hit in fresh:
        _hold(turn, replace(hit, line=replace(hit.line, time=hit.line.time - offset)), record.logged_ms)
    if fresh:
        turn.set(counts=(*turn.state.counts, *record.counts)[:_COUNTS])
    incident = turn.state.incident
    if incident is not None and incident.state == "ended":
        end(turn)
    revise(turn)


def _raised(judged: Mapping[str, int], ends: Mapping[str, int]) -> dict[str, int]:
    raised = dict(judged)
    for generation, offset in ends.items():
        raised[generation] = max(offset, raised.pop(generation, -1))
    return dict(list(raised.items())[-_GENERATIONS:])


def _hold(turn: Turn, hit: Hit, logged_ms: int) -> None:
    state = turn.state
    if hit.role == "success":
        turn.set(succeeded=True)
        return
    if hit.role not in ("cause", "consequence"):
        return
    alike = [
        h
        for h in state.held
        if h.hit.rule == hit.rule and h.hit.line.rank == hit.line.rank and h.hit.line.path == hit.line.path
    ]
    if len(alike) >= _HELD_PER_RULE_AND_RANK or len(state.held) >= _HELD:
        line = hit.line
        more = HitCount(hit.rule, line.rank, 1, line.number, line.number, line.path)
        turn.set(counts=(*state.counts, more)[:_COUNTS])
        return
    turn.set(held=(*state.held, Held(hit, state.step if state.step is not None else -1, logged_ms)))
    suspect(turn, hit)


def _progress(turn: Turn, node: str, column: Progress, judged: int, offset: float) -> None:
    """Columns of one file, oldest first. Only what lies above the mark already judged counts."""
    for index, ended in enumerate(column.ends):
        if ended <= judged:
            continue
        step, time = column.steps[index], column.times[index] - offset
        state = turn.state
        forget_silence(turn)
        nodes = (node,) if step > (state.step if state.step is not None else -1) else state.progress_nodes
        if node not in nodes and step == state.step:
            nodes = (*nodes, node)
        turn.set(
            phase=column.phase,
            step=max(step, state.step if state.step is not None else -1) if step >= 0 else state.step,
            total=column.total if column.total is not None else state.total,
            progress_nodes=nodes or (node,),
            progress_time=max(time, state.progress_time),
        )
        if step >= 0:
            _went_on(turn, step, time)
            if index < len(column.losses):
                _loss(turn, step, column.losses[index])


def _went_on(turn: Turn, step: int, time: float) -> None:
    """A step after a suspicion: the line did not end the job once the step passes two beyond it."""
    if turn.state.ended_ms is not None and turn.state.stalled is None:
        return
    kept = []
    for held in turn.state.held:
        if time <= held.hit.line.time:
            kept.append(replace(held, step=max(held.step, step)))
        elif step < held.step + _STEPS_TO_WITHDRAW:
            kept.append(held)
    turn.set(held=tuple(kept))
    incident = turn.state.incident
    if incident is None:
        return
    if turn.state.stalled is not None and turn.state.scheduler is None:
        if turn.state.step is not None and step >= (incident.verdict.step or 0) + _STEPS_TO_WITHDRAW:
            withdraw(turn, f"the job went on: step {step}")
    elif incident.state == "suspected" and not kept:
        withdraw(turn, f"the job went on: step {step}")


def _loss(turn: Turn, step: int, text: str) -> None:
    try:
        loss = float(text)
    except ValueError:
        return
    losses, spike = turn.spikes.observe(turn.state.losses, step, loss)
    turn.set(losses=losses)
    if spike is None:
        return
    numbers = {"step": str(step), "loss": text, "usual": f"{spike.usual:.6g}"}
    if spike.open:
        turn.open_finding(
            "loss_spike",
            f"the loss is {text} at step {step}; lately it was {spike.usual:.4g}",
            quantities=numbers,
        )
    else:
        turn.clear_finding("loss_spike", f"the loss is back at {text} at step {step}")
