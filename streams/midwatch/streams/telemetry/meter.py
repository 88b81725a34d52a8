"""What a process exports its measurements with. Pure: only the interface, so that any stage may import it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from midwatch.streams.telemetry.names import Metric

Labels = Mapping[str, str | int]
Reading = tuple[float, Labels]
"""The value of one series, and its attributes."""
Read = Callable[[], Iterable[Reading]]
"""Gives all series of one metric. It runs in another thread, at each scrape and each push."""

NO_LABELS: Labels = {}


class Meter(Protocol):
    """The instruments of one process. No method raises, and none waits for a receiver."""

    def add(self, metric: Metric, amount: float = 1, labels: Labels = NO_LABELS) -> None:
        """Add to a counter. Its series never end, so `labels` must name no job."""
        ...

    def record(self, metric: Metric, value: float, labels: Labels = NO_LABELS) -> None:
        """Add one value to a histogram."""
        ...

    def watch(self, metric: Metric, read: Read) -> None:
        """Read a gauge or a counter when it is asked for. A series that `read` leaves out ends."""
        ...


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a process sees all that it must see. `reasons` say why not, one printable line each."""

    reasons: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether no reason speaks against it."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Identity:
    """Who exports: the attributes of the resource."""

    service: str
    namespace: str
    instance: str


class Export(Protocol):
    """The open telemetry of one process."""

    @property
    def meter(self) -> Meter: ...

    def serve(self, health: Callable[[], Health]) -> None:
        """Answer scrapes and questions of readiness, from a thread of its own."""
        ...

    def close(self) -> None:
        """Push what is left, for at most a few seconds."""
        ...
