"""The trace process: reads `incidents`, `decisions` and `commands`, and exports spans and log records. Shell.

Kafka keeps what is to be exported, so a collector that is away delays traces and costs none. The other agents
never wait for it. The process notes in Redis what the collector has taken, and commits behind that. What the
note holds is never exported again: after a crash of any agent, a rebuild, or a repeated record. The latest
notes are in memory too: where Redis loses its data, the agents may send their last records again.
"""

from __future__ import annotations

import logging
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kafka import OffsetAndMetadata, TopicPartition

from midwatch.agents.trace.emitted import Emitted
from midwatch.agents.trace.spans_of import place_of, traced
from midwatch.streams.errors import ConfigurationError, MalformedRecord, NewerRecord
from midwatch.streams.failpoints import failpoint
from midwatch.streams.records.codec import decode
from midwatch.streams.services.kafka_client import LASTING, plain_consumer
from midwatch.streams.services.reachable import check_redis, redis_client
from midwatch.streams.services.topic_admin import check_topics
from midwatch.streams.settings.schema import Settings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Health, Meter
from midwatch.streams.telemetry.spans import IncidentEvent, IncidentExport, SpanRecord
from midwatch.streams.telemetry.start import identity, open_telemetry, require_extra
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.exported import export_counters
from midwatch.streams.worker.readiness import declare_ready

log = logging.getLogger(__name__)

_POLL_MS = 500
_AT_ONCE = 200
_PAUSE_S = 2.0
_REMEMBERED = 2_000
"""The traces whose notes are in memory too, for the case that Redis loses them. The latest stay."""
STALE_S = 60.0


def run(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT, then return 0.

    Raises:
        ConfigurationError: no receiver is named, or the extra `otel` is not installed.
        ServiceUnreachable: Kafka, a topic or Redis is not there.
    """
    if not settings.telemetry.otlp:
        raise ConfigurationError(
            "there is no receiver for traces",
            where="telemetry.otlp",
            remedy="name one, for example http://127.0.0.1:4318",
        )
    require_extra()
    from midwatch.streams.telemetry.sdk_incidents import SdkIncidentExport

    logging.getLogger("kafka").setLevel(logging.WARNING)
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # its errors hold a stack each
    check_topics(settings)
    check_redis(settings)
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _: stopping.append(n))
    who = identity(settings, "trace")
    sender = SdkIncidentExport(settings.telemetry.otlp, who.namespace, who.instance)
    emitted = Emitted(redis_client(settings), settings.topics.prefix)
    tracing = Tracing(settings, sender, emitted)
    export = open_telemetry(settings, "trace")
    try:
        if export is not None:
            tracing.export(export.meter)
            export.serve(tracing.health)
        declare_ready(settings.state_directory, "trace")
        while not stopping:
            if not tracing.turn():
                time.sleep(_PAUSE_S)
    finally:
        tracing.close()
        if export is not None:
            export.close()
    return 0


R = TypeVar("R")


@dataclass(slots=True)
class _New(Generic[R]):
    """What is to be exported, with the note for each."""

    records: list[R] = field(default_factory=list)
    ends: dict[str, dict[int, int]] = field(default_factory=dict)

    def add(self, record: R, place: str, mark: int, end_ms: int, known: dict[str, dict[int, int]]) -> None:
        """Add it unless it is known. `known` grows, so that a repeat within one read is seen too."""
        if mark not in known[place]:
            self.records.append(record)
            known[place][mark] = end_ms
            self.ends.setdefault(place, {})[mark] = end_ms


class Tracing:
    """Reads, exports, notes, commits; in this order, so that a crash between two steps loses nothing."""

    def __init__(self, settings: Settings, sender: IncidentExport, emitted: Emitted) -> None:
        self.counters = Counters()
        self.spans = 0
        self._group = f"{settings.topics.prefix}.trace"
        self._sender = sender
        self._emitted = emitted
        self._remembered: dict[str, dict[int, int]] = {}
        self._waiting: list[Any] = []
        self._refusing = ""
        self._consumer: Any = plain_consumer(
            settings.kafka,
            **LASTING,
            group_id=self._group,
            auto_offset_reset="latest",
            max_poll_records=_AT_ONCE,
        )
        topics = settings.topic_names
        self._partitions = [
            TopicPartition(topic, number)
            for topic in (topics.incidents, topics.decisions, topics.commands)
            for number in sorted(self._consumer.partitions_for_topic(topic) or ())
        ]
        self._consumer.assign(self._partitions)  # one process does it: the group only keeps the offsets
        # A first start begins at the end. Its positions must hold before anything comes.
        self._commit({partition: self._consumer.position(partition) for partition in self._partitions})

    def turn(self) -> bool:
        """Read and export at most `_AT_ONCE` records. False if the collector did not take them."""
        taken = self._handle()
        self._look()
        return taken

    def _handle(self) -> bool:
        if not self._waiting:
            polled = self._consumer.poll(timeout_ms=_POLL_MS)
            messages = [message for batch in polled.values() for message in batch]
            self._waiting = sorted(messages, key=lambda message: message.timestamp)
        if not self._waiting:
            return True
        taken = self._export(
            [(record, at) for m in self._waiting if (record := _read(m)) for at in (m.timestamp,)]
        )
        if not taken:
            return False
        self.counters.records += len(self._waiting)
        reached = {TopicPartition(m.topic, m.partition): 0 for m in self._waiting}
        for message in self._waiting:
            place = TopicPartition(message.topic, message.partition)
            reached[place] = max(reached[place], message.offset + 1)
        self._waiting = []
        self._commit(reached)
        return True

    def export(self, meter: Meter) -> None:
        """Export from now on what this process did, and what waits for the collector."""
        export_counters(meter, self.counters, self._group, self.health)
        meter.watch(names.SPANS, lambda: [(self.spans, {})])
        meter.watch(names.TELEMETRY_LATE, lambda: [(sum(self.counters.lag.values()), {})])

    def health(self) -> Health:
        """Whether Kafka answers and the collector takes what it gets."""
        reasons = [f"the collector does not take spans: {self._refusing}"] if self._refusing else []
        if time.time() - self.counters.looked_at > STALE_S:
            reasons.append("no answer of Kafka")
        return Health(tuple(reasons))

    def close(self) -> None:
        self._consumer.close()
        self._sender.close()

    def _export(self, records: Sequence[tuple[object, int]]) -> bool:
        known = self._emitted.of(place for record, _ in records if (place := place_of(record)))
        for place in known:
            known[place] |= self._remembered.get(place, {})
        spans, events = _New[SpanRecord](), _New[IncidentEvent]()
        for record, at_ms in records:
            found = traced(record, at_ms, known.get(place_of(record), {}))
            if found is None:
                continue
            for span in found.spans:
                spans.add(span, found.place, span.span, span.end_ms, known)
            if found.event is not None:
                events.add(found.event, found.place, found.event_id ^ 1, at_ms, known)
        if not (
            self._give(spans, self._sender.export_spans) and self._give(events, self._sender.export_events)
        ):
            if not self._refusing:
                log.warning("the collector does not take spans; they wait in Kafka until it does")
            self._refusing = f"{len(self._waiting)} records wait"
            return False
        if self._refusing:
            log.info("the collector takes spans again")
        self._refusing = ""
        self.spans += len(spans.records)
        return True

    def _give(self, new: _New[R], export: Callable[[Sequence[R]], bool]) -> bool:
        """Export and note at once: a failure of what comes later must not export this again."""
        if new.records:
            if not export(new.records):
                return False
            failpoint("exported")
            self._emitted.add(new.ends)
            failpoint("noted")
            self._remember(new.ends)
        return True

    def _remember(self, ends: dict[str, dict[int, int]]) -> None:
        for place, by_id in ends.items():
            self._remembered[place] = self._remembered.pop(place, {}) | by_id
        for oldest in list(self._remembered)[: max(0, len(self._remembered) - _REMEMBERED)]:
            del self._remembered[oldest]

    def _commit(self, positions: dict[Any, int]) -> None:
        self._consumer.commit(
            {place: OffsetAndMetadata(offset, "", -1) for place, offset in positions.items()}
        )

    def _look(self) -> None:
        """Measure what is not exported yet: what Kafka has, and what was read and is not taken."""
        ends, kept_up_at = self._consumer.end_offsets(self._partitions), self.counters.kept_up_at
        held = Counter(TopicPartition(message.topic, message.partition) for message in self._waiting)
        lag = {p: max(0, ends[p] - self._consumer.position(p)) + held[p] for p in self._partitions}
        self.counters.measured({(p.topic, p.partition): number for p, number in lag.items()}, time.time())
        if self._refusing:
            self.counters.kept_up_at = kept_up_at


def _read(message: Any) -> object | None:
    """The record; None for what the other readers of the topic have already refused."""
    try:
        return None if message.value is None else decode(message.value)
    except (MalformedRecord, NewerRecord):
        return None
