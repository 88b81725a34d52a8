"""Counters of a worker process since its start, for telemetry and for tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

SLACK = 1000
"""A lag of so many records is usual between two looks of a busy worker."""


@dataclass(slots=True)
class Counters:
    """Plain counts. `stopped` and `lag` are gauges by (topic, partition)."""

    records: int = 0
    """Records applied and written (stateful) or handled (stateless)."""
    batches: int = 0
    replayed: int = 0
    """Records read again after a seek and skipped, because the state already holds them."""
    stale: int = 0
    """Records of an older generation or of a lost partition; the partition's owner reads them again."""
    below_mark: int = 0
    """Records skipped because their id was seen before: the sender sent them twice."""
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Dead-lettered records by (topic, kind of refusal); `refusals` in this package lists the kinds."""
    muted: int = 0
    """Sends left out while state was rebuilt, because they were published before."""
    fenced: int = 0
    """Writes that Redis refused, because another worker had written the partition."""
    duplicate_answers: int = 0
    """Writes whose first answer was lost; the retry found them written."""
    redis_retries: int = 0
    published: int = 0
    recovered: int = 0
    """Outgoing records that an assignment found unpublished."""
    retention_gap: int = 0
    """Offsets that retention deleted before they were read."""
    rules_taken: int = 0
    """How often this process switched to other rules; the rules of its start do not count."""
    rules_refused: int = 0
    """Pushes and edits that could not be used; the current bundle stayed in force."""
    seeks: int = 0
    ticks: int = 0
    stopped: dict[tuple[str, int], str] = field(default_factory=dict)
    lag: dict[tuple[str, int], int] = field(default_factory=dict)

    looked_at: float = 0.0
    """Unix time at which the lag was last measured; 0 before the first time."""
    kept_up_at: float = 0.0
    """Unix time at which each partition's lag was last small or shrinking; 0 before that."""

    @property
    def poisoned(self) -> int:
        """All dead-lettered records."""
        return self.refused.total()

    def measured(self, lag: dict[tuple[str, int], int], now_s: float) -> None:
        """Note the lag of each owned partition. A lag that is new or grows is not kept up with."""
        before, self.lag, self.looked_at = self.lag, lag, now_s
        if all(number <= SLACK or number < before.get(place, number) for place, number in lag.items()):
            self.kept_up_at = now_s

    def refuse(self, topic: str, kind: str) -> None:
        """Count one dead-lettered record."""
        self.refused[topic, kind] += 1
