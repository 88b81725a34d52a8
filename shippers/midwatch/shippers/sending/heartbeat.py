"""When to beat, and what a beat says. Pure: time and facts are arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midwatch.shippers.files.tail import Now
from midwatch.streams.records import Heartbeat, Origin

_NODES_A_SECOND = 500


def interval(least: float, nodes: int) -> float:
    """Seconds between two beats of a node: all nodes of a job together send 500 a second at most."""
    return max(least, nodes / _NODES_A_SECOND)


@dataclass(frozen=True, slots=True)
class HeartbeatFacts:
    """What the shipper knows when a beat is due; see `Heartbeat` for what each means."""

    at_end: bool
    backlog: int
    files: int
    alive: bool | None
    samples: Mapping[str, float]


class HeartbeatCounter:
    """Numbers the beats of one shipper start."""

    def __init__(self, origin: Origin, seconds: float) -> None:
        self._origin = origin
        self._interval = seconds
        self._sequence = 0
        self._due = float("-inf")

    def due(self, now: Now) -> bool:
        """Whether the interval has passed; at the start, and after a pause of any length, at once."""
        return now.monotonic >= self._due

    def heartbeat(self, now: Now, facts: HeartbeatFacts, *, final: bool = False) -> Heartbeat:
        """The next beat. Send it behind all lines that were read before it, or not at all."""
        self._sequence += 1
        self._due = now.monotonic + self._interval
        return Heartbeat(
            origin=self._origin,
            sequence=self._sequence,
            wall=now.wall,
            monotonic=now.monotonic,
            interval=self._interval,
            at_end=facts.at_end,
            backlog=facts.backlog,
            alive=facts.alive,
            final=final,
            files=facts.files,
            samples=facts.samples,
        )
