"""What the bench sees from outside: each record of the topics and when it came, and the jobs' ledgers."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from midwatch.streams.records import Hits, Incident, codec
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.settings.schema import Settings

_NUMBER = re.compile(r"from peer \S+<(\d+)>")


@dataclass(frozen=True, slots=True)
class Arrival:
    """`at` is this machine's wall clock when our consumer had it; the writers of the ledgers share it."""

    at: float
    topic: str
    partition: int
    offset: int
    record: Any


class Follower(threading.Thread):
    """Reads `events`, `incidents` and `commands` from their present ends on."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(name="follower", daemon=True)
        names = settings.topic_names
        self._consumer: Any = KafkaConsumer(
            **kafka_options(settings), group_id=None, enable_auto_commit=False, fetch_max_wait_ms=20
        )
        topics = (names.events, names.incidents, names.commands)
        places = [TopicPartition(t, p) for t in topics for p in self._consumer.partitions_for_topic(t)]
        self._consumer.assign(places)
        self._consumer.seek_to_end(*places)
        for place in places:
            self._consumer.position(place)
        self._over = threading.Event()
        self.arrivals: list[Arrival] = []

    def run(self) -> None:
        while not self._over.is_set():
            polled = self._consumer.poll(timeout_ms=20)
            at = time.time()
            for place, messages in polled.items():
                for message in messages:
                    record = codec.decode(message.value)
                    self.arrivals.append(Arrival(at, place.topic, place.partition, message.offset, record))
        self._consumer.close()

    def stop(self) -> None:
        self._over.set()
        self.join()

    def first(self, wanted: Callable[[Arrival], object], since: int = 0) -> Arrival | None:
        """The first arrival of that kind, from the `since`-th on."""
        return next((arrival for arrival in self.arrivals[since:] if wanted(arrival)), None)


def suspected(record: object) -> int | None:
    """The number of the cause line for which an incident is suspected."""
    if not isinstance(record, Incident) or record.state != "suspected":
        return None
    found = [_NUMBER.search(hit.line.text) for hit in record.evidence]
    return next((int(number[1]) for number in found if number), None)


def steps(record: object) -> Iterator[int]:
    """The steps that a record of `events` tells of."""
    if isinstance(record, Hits):
        for progress in record.progress:
            yield from progress.steps


def noted(ledger: Path) -> list[dict[str, Any]]:
    """The whole lines of a ledger."""
    text = ledger.read_text() if ledger.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def times(ledger: Path, what: str) -> dict[int, float]:
    """When the job wrote what, by its number."""
    return {row["number"]: row["t"] for row in noted(ledger) if row["what"] == what}
