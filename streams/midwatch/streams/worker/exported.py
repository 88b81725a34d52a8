"""What every worker exports of itself: its counters, its lag, and whether it sees all that it must see."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Health, Labels, Meter, Reading
from midwatch.streams.worker.counters import Counters

STALE_S = 30.0
"""A worker looks at Kafka every 5 seconds. Without a look for so long, it does not know what it misses."""


def export_counters(
    meter: Meter, counters: Counters, group: str, sees: Callable[[], Health] | None = None
) -> None:
    """Export the counters of this process from now on. `sees`: its own readiness, where that is more."""
    ready = sees or (lambda: health(counters, time.time()))
    meter.watch(names.RECORDS, lambda: [(counters.records, _messaging("process", group))])
    meter.watch(names.SENT, lambda: sent(counters, group))
    meter.watch(names.REFUSED, lambda: refused(counters))
    meter.watch(names.RULES_REFUSED, lambda: [(counters.rules_refused, {})])
    meter.watch(names.LAG, lambda: _lag(counters))
    meter.watch(names.STOPPED, lambda: _stopped(counters))
    meter.watch(names.READY, lambda: [(int(ready().ready), {})])
    meter.watch(names.ALIVE, lambda: [(counters.kept_up_at, {})] if counters.kept_up_at else [])


def sent(counters: Counters, group: str) -> list[Reading]:
    """The records that this process has sent."""
    return [(counters.published, _messaging("send", group))]


def health(counters: Counters, now_s: float) -> Health:
    """Whether a worker keeps up with its partitions. `now_s` is Unix time."""
    reasons = [f"{topic}/{number} is stopped: {why}" for (topic, number), why in stopped(counters)]
    if not counters.looked_at:
        reasons.append("it has not read its partitions yet")
    elif now_s - counters.looked_at > STALE_S:
        reasons.append(f"no answer of Kafka for {now_s - counters.looked_at:.0f} s")
    elif now_s - counters.kept_up_at > STALE_S:
        behind, since_s = sum(counters.lag.values()), now_s - counters.kept_up_at
        reasons.append(f"{behind} records behind, and not catching up for {since_s:.0f} s")
    return Health(tuple(reasons))


def stopped(counters: Counters) -> list[tuple[tuple[str, int], str]]:
    """The stopped partitions, with the reason of each."""
    return sorted(counters.stopped.items())


def refused(counters: Counters) -> list[Reading]:
    """The dead letters, by topic and kind of refusal."""
    return [
        (number, {names.DESTINATION: topic, names.KIND: kind})
        for (topic, kind), number in sorted(counters.refused.items())
    ]


def _messaging(operation: str, group: str) -> Labels:
    return {names.SYSTEM: "kafka", names.OPERATION: operation, names.GROUP: group}


def _lag(counters: Counters) -> Iterable[Reading]:
    return [
        (lag, {names.DESTINATION: topic, names.PARTITION: str(number)})
        for (topic, number), lag in sorted(counters.lag.items())
    ]


def _stopped(counters: Counters) -> Iterable[Reading]:
    by_topic = Counter(topic for (topic, _), _ in stopped(counters))
    return [(number, {names.DESTINATION: topic}) for topic, number in sorted(by_topic.items())]
