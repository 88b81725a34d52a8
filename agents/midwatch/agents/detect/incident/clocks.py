"""How the times of a node's lines become comparable with those of other nodes, and stay so with its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from midwatch.agents.detect.incident.turn import Turn
from midwatch.streams.records import Held, Hit

SAMPLES = 64
_AHEAD = 60.0
_LATE = 7 * 86_400.0  # a broker may be away over a weekend


@dataclass(frozen=True, slots=True)
class NodeClock:
    """A node's clock against the broker's. Seconds.

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


def offset(samples: Sequence[float]) -> float:
    """Seconds that a node's clock is ahead, by its last beats' wall clock minus their append time: the
    largest, because a beat on its way only makes it smaller."""
    return max(samples, default=0.0)


def set_right(turn: Turn, node: str, before: Sequence[float], after: Sequence[float]) -> None:
    """A better knowledge of the node's clock holds for its lines that are held already.

    Else two lines that it wrote one after the other would change places because a beat came between them. A
    clock that was moved says nothing of the lines before; what is settled stands.
    """
    incident = turn.state.incident
    by = offset(after) - offset(before)
    if not by or (before and abs(by) > _AHEAD) or (incident is not None and incident.state == "settled"):
        return
    held, noted, left = turn.state.held, turn.state.noted, turn.state.left
    if any(each.hit.line.node == node for each in (*held, *noted)):
        turn.set(held=_of_node(held, node, by), noted=_of_node(noted, node, by))
    if left is not None and left.line.node == node:
        turn.set(left=_earlier(left, by))


def _of_node(held: Sequence[Held], node: str, by: float) -> tuple[Held, ...]:
    return tuple(_moved(each, by) if each.hit.line.node == node else each for each in held)


def _moved(held: Held, by: float) -> Held:
    at, logged = held.hit.line.time, held.logged_ms / 1000
    if logged and (at == logged or NodeClock(by, logged).corrected(at) == logged):
        return held  # its append time stands for it, or would
    return replace(held, hit=_earlier(held.hit, by))


def _earlier(hit: Hit, by: float) -> Hit:
    return replace(hit, line=replace(hit.line, time=hit.line.time - by))
