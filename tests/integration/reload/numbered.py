"""Numbered lines of three kinds through match, while bundles that stamp different markers come and go.

Both bundles hold three files of one rule each. A chunk holds lines of all three kinds, so a chunk that was
matched by a mixture of two bundles would show.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from midwatch.rules.prefilter.workloads import WORKLOADS
from midwatch.streams.records import Anchor, Chunk, Generation, Hits, Origin, Section, codec
from midwatch.streams.records.identity import message_key
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.settings.schema import Settings

KINDS = ("one", "two", "three")
JOB = "local:ada/numbered"
NODES = tuple(f"n{number}" for number in range(16))
_RULE = """version: 1
rules:
  - name: {marker}_{kind}
    role: progress
    pattern: '^{kind} (?P<step>\\d+) is a numbered line'
"""


def own_file(marker: str) -> str:
    """The three rules in one file, and one more that no other edit had."""
    first, *others = (_RULE.format(marker=marker, kind=kind) for kind in KINDS)
    rules = first + "".join(other.partition("rules:\n")[2] for other in others)
    return (
        rules
        + f"  - {{name: {marker}_lost, pattern: 'edit {marker} of the watch was lost', role: context}}\n"
    )


def write_bundle(directory: Path, marker: str) -> Path:
    """Three files, each with the rule of one kind under a name that shows the marker."""
    directory.mkdir(parents=True)
    for kind in KINDS:
        (directory / f"{kind}.yaml").write_text(_RULE.format(marker=marker, kind=kind))
    return directory


@dataclass
class Sender:
    """Sends chunks of numbered lines behind noise, `per_s` chunks a second, until told to stop. Once `enough`
    lines are sent a chunk holds three: the load stays, and detect has less to fold."""

    settings: Settings
    enough: int
    lines: int = 300
    noise: int = 96 << 10
    per_s: float = 40.0
    sent: int = 0
    _ends: dict[str, tuple[int, int]] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        producer = KafkaProducer(**kafka_options(self.settings), linger_ms=5, compression_type="lz4")
        noise = WORKLOADS["noise"](self.noise)
        noise = noise[: noise.rindex(b"\n") + 1]
        try:
            for number, due in enumerate(self._beat()):
                node = NODES[number % len(NODES)]
                message = codec.encode_log(self._chunk(node, noise))
                key = message_key(JOB, node)
                producer.send(self.settings.topic_names.logs, message.value, key, list(message.headers))
                self.sent += self._lines()
                self._over.wait(max(0.0, due - time.monotonic()))
            producer.flush()
        finally:
            producer.close()

    def stop(self) -> None:
        self._over.set()

    def _lines(self) -> int:
        return self.lines if self.sent < self.enough else len(KINDS)

    def _beat(self) -> Iterator[float]:
        start = time.monotonic()
        number = 0
        while not self._over.is_set():
            number += 1
            yield start + number / self.per_s

    def _chunk(self, node: str, noise: bytes) -> Chunk:
        numbers = range(self.sent, self.sent + self._lines())
        text = noise + b"".join(b"%s %d is a numbered line\n" % (KINDS[n % 3].encode(), n) for n in numbers)
        begin, first = self._ends.get(node, (0, 1))
        count = text.count(b"\n")
        self._ends[node] = begin + len(text), first + count
        now = time.time()
        section = Section(
            path=f"/logs/{node}",
            generation=Generation(1, NODES.index(node) + 1, node),
            size=len(text),
            lines=count,
            anchors=(Anchor(0, begin, first),),
            end=begin + len(text),
            read_before=now,
            read_at=now,
        )
        return Chunk(Origin(JOB, node, len(NODES), "local:1:1", "boot", node), (section,), text)


@dataclass
class Seen:
    """All that match said of the numbered lines: `counted[n]` is how often detect would count line n.

    Match tells of a chunk again when its group's offset did not move in time. Like detect, this drops the
    lines that an earlier record of their file reached, and counts them as `repeated`.
    """

    settings: Settings
    counted: bytearray = field(default_factory=bytearray)
    found: int = 0
    repeated: int = 0
    mistaken: list[tuple[str, int]] = field(default_factory=list)
    latest: dict[str, str] = field(default_factory=dict)
    by_bundle: dict[str, int] = field(default_factory=dict)
    markers: dict[str, set[str]] = field(default_factory=dict)
    records: int = 0
    delays: list[float] = field(default_factory=list)
    """From the append of a chunk to that of what match says of it, by the broker's clock; seconds."""
    _judged: dict[str, int] = field(default_factory=dict)  # generation -> the offset that was reached
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        consumer = KafkaConsumer(**kafka_options(self.settings), group_id=None, enable_auto_commit=False)
        topic = self.settings.topic_names.events
        consumer.assign([TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic))])
        consumer.seek_to_beginning()
        try:
            while not self._over.is_set():
                for messages in consumer.poll(timeout_ms=200).values():
                    for message in messages:
                        self._take(message)
        finally:
            consumer.close()

    def stop(self) -> None:
        self._over.set()

    def _take(self, message: Any) -> None:
        record = codec.decode(message.value) if message.key == JOB.encode() else None
        if not isinstance(record, Hits):
            return
        self.records += 1
        self.delays.append((message.timestamp - record.logged_ms) / 1000)
        self.latest[record.origin.node] = record.bundle
        markers = self.markers.setdefault(record.bundle, set())
        for column in record.progress:
            marker, _, kind = column.rule.partition("_")
            if kind not in KINDS:
                continue
            markers.add(marker)
            mark = self._judged.get(column.generation, -1)
            fresh = [s for s, end in zip(column.steps, column.ends, strict=True) if end > mark]
            for step in fresh:
                self._count(kind, step)
            self.repeated += len(column.steps) - len(fresh)
            self.by_bundle[record.bundle] = self.by_bundle.get(record.bundle, 0) + len(fresh)
        for generation, end in record.ends.items():
            self._judged[generation] = max(self._judged.get(generation, -1), end)

    def everywhere(self, bundle: str) -> bool:
        """Whether the latest word on every node's lines is by this bundle."""
        return len(self.latest) == len(NODES) and set(self.latest.values()) == {bundle}

    def _count(self, kind: str, number: int) -> None:
        if KINDS[number % 3] != kind:
            self.mistaken.append((kind, number))
            return
        if number >= len(self.counted):
            self.counted.extend(bytes(number + 1 - len(self.counted)))
        self.found += self.counted[number] == 0
        self.counted[number] = min(self.counted[number] + 1, 255)

    def lost(self, sent: int) -> list[int]:
        """Lines that no record holds."""
        return [number for number in range(sent) if number >= len(self.counted) or not self.counted[number]]

    def doubled(self) -> list[int]:
        """Lines that were counted more than once."""
        return [number for number, count in enumerate(self.counted) if count > 1]
