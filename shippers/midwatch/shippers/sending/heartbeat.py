"""When a heartbeat is due, and what it holds. Pure: time and facts are arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midwatch.shippers.files.tail import Now
from midwatch.streams.records import CheckpointChoice, Heartbeat, Origin

_NODES_A_SECOND = 500


def interval(least: float, nodes: int) -> float:
    """Seconds between two heartbeats of a node. All nodes of a job together send 500 a second at most."""
    return max(least, nodes / _NODES_A_SECOND)


@dataclass(frozen=True, slots=True)
class HeartbeatFacts:
    """The facts in a heartbeat that the shipper observes; `Heartbeat` explains each field."""

    at_end: bool
    backlog: int
    files: int
    alive: bool | None
    samples: Mapping[str, float]


class HeartbeatCounter:
    """Makes and numbers the heartbeats of one shipper start."""

    def __init__(self, origin: Origin, seconds: float, checkpoint: CheckpointChoice | None = None) -> None:
        self._origin = origin
        self._checkpoint = checkpoint
        self._interval = seconds
        self._sequence = 0
        self._due = float("-inf")

    def due(self, now: Now) -> bool:
        """Whether the interval has passed. True before the first heartbeat."""
        return now.monotonic >= self._due

    def heartbeat(self, now: Now, facts: HeartbeatFacts, *, final: bool = False) -> Heartbeat:
        """The next heartbeat. Send it behind all lines that were read before it, or not at all."""
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
            checkpoint=self._checkpoint,
        )
