"""Clocks: correct the times of a node's lines, so that lines of several nodes are comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from midwatch.agents.detect.incident.turn import Turn
from midwatch.streams.records import Held, Hit

SAMPLES = 64
_AHEAD = 60.0
_LATE = 7 * 86_400.0  # seconds; Kafka may be unreachable over a weekend


@dataclass(frozen=True, slots=True)
class NodeClock:
    """A node's clock against the broker's. Seconds.

    `offset`: how far the node's clock is ahead of the broker's, by the heartbeats so far. `logged`: append
    time of the lines' chunk, 0 if unknown.
    """

    offset: float
    logged: float

    def corrected(self, time: float) -> float:
        """The time of a line by the broker's clock.

        A chunk holds lines from before its append time. A time after that, or more than a week before, comes
        from a clock of unknown error: before the first heartbeat, or after a jump. Then the result is the
        append time.
        """
        at = time - self.offset
        if self.logged and not self.logged - _LATE <= at <= self.logged + _AHEAD:
            return self.logged
        return at


def offset(samples: Sequence[float]) -> float:
    """Seconds that a node's clock is ahead. `samples`: wall clock minus append time of its last heartbeats.

    The largest sample counts, because the way to Kafka only makes a sample smaller.
    """
    return max(samples, default=0.0)


def read_ms(samples: Sequence[float], logged_ms: int) -> int:
    """When the shipper began to read for its last heartbeat, by the broker's clock. Milliseconds.

    `samples`: as in `offset`, the last heartbeat's at the end. `logged_ms`: its append time. The way to Kafka
    may take seconds, and lines may be written meanwhile. A sample more than a minute below the largest comes
    from a clock that was set back. It tells nothing of the way, so the result is the append time.
    """
    late = offset(samples) - samples[-1]
    return logged_ms - int(late * 1000) if late <= _AHEAD else logged_ms


def correct_held_lines(turn: Turn, node: str, before: Sequence[float], after: Sequence[float]) -> None:
    """Correct the times of the node's held lines by a better offset of its clock.

    Otherwise a heartbeat between two lines of a node could reverse their order. A jump of the clock corrects
    no earlier lines. A settled incident keeps its times.
    """
    incident = turn.state.incident
    by = offset(after) - offset(before)
    if not by or (before and abs(by) > _AHEAD) or (incident is not None and incident.state == "settled"):
        return
    held, noted, left = turn.state.held, turn.state.noted, turn.state.left
    if any(each.hit.line.node == node for each in (*held, *noted)):
        turn.set(held=_of_node(held, node, by), noted=_of_node(noted, node, by))
    if left is not None and left.line.node == node:
        turn.set(left=_shifted(left, by))


def _of_node(held: Sequence[Held], node: str, by: float) -> tuple[Held, ...]:
    return tuple(_corrected(each, by) if each.hit.line.node == node else each for each in held)


def _corrected(held: Held, by: float) -> Held:
    at, logged = held.hit.line.time, held.logged_ms / 1000
    if logged and (at == logged or NodeClock(by, logged).corrected(at) == logged):
        return held  # its time is the append time, or would be
    return replace(held, hit=_shifted(held.hit, by))


def _shifted(hit: Hit, by: float) -> Hit:
    return replace(hit, line=replace(hit.line, time=hit.line.time - by))
