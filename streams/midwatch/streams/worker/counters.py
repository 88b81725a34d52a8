"""What a worker process has done since it started, for telemetry and for tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """Plain counts. `stopped` and `lag` are gauges by (topic, partition)."""

    records: int = 0
    """Applied and written (stateful) or handled (stateless)."""
    batches: int = 0
    replayed: int = 0
    """Read again after a seek, and skipped because the state already holds them."""
    stale: int = 0
    """Of an older generation or of a partition that is not ours any more: they come again to the owner."""
    below_mark: int = 0
    """Came with an id that was seen before: sent twice upstream, counted once here."""
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Dead-lettered, by (topic, kind of refusal); `midwatch.streams.worker.refusals` has the kinds."""
    muted: int = 0
    """Sends left out while state was rebuilt, because they had been published before."""
    fenced: int = 0
    """Writes that Redis refused because another worker had written the partition."""
    duplicate_answers: int = 0
    """Writes whose first answer was lost; the retry found them done."""
    redis_retries: int = 0
    published: int = 0
    recovered: int = 0
    """Outgoing records found unpublished at an assignment."""
    retention_gap: int = 0
    """Offsets that retention deleted before they were read."""
    rules_taken: int = 0
    """How often other rules came into force in this process, without the ones that it started with."""
    rules_refused: int = 0
    """Pushes and edits that could not be used: the bundle in force before them stayed."""
    seeks: int = 0
    ticks: int = 0
    stopped: dict[tuple[str, int], str] = field(default_factory=dict)
    lag: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def poisoned(self) -> int:
        """Dead-lettered in all."""
        return self.refused.total()

    def refuse(self, topic: str, kind: str) -> None:
        """Count one record that was dead-lettered."""
        self.refused[topic, kind] += 1
