"""Read, export, note, commit: what comes again after a crash between any two of these, and what does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from midwatch.agents.trace import worker
from midwatch.agents.trace.emitted import Emitted
from midwatch.agents.trace.worker import Tracing
from midwatch.streams.records import codec
from midwatch.streams.settings.schema import Settings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.spans import IncidentEvent, IncidentExport, SpanRecord
from unit.agents.match.test_match_metrics import Kept
from unit.agents.trace.test_spans_of import ACCEPTED, DECISION, DONE, INCIDENT, ORDER

RECORDS = (INCIDENT, DECISION, ORDER, ACCEPTED, DONE)


class Died(Exception):
    """A power cut."""


@dataclass
class Log:
    """The topics and the group's offset, beyond any crash of the reader."""

    values: list[bytes] = field(default_factory=list)
    committed: int = 0


class Reader:
    """As much of a consumer as `Tracing` uses."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.at = log.committed

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0} if topic.endswith("incidents") else set()

    def assign(self, _: object) -> None: ...
    def close(self) -> None: ...

    def position(self, _: object) -> int:
        return self.at

    def end_offsets(self, partitions: Iterable[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, len(self.log.values))

    def poll(self, **_: object) -> dict[Any, list[Any]]:
        begin, self.at = self.at, min(len(self.log.values), self.at + 2)
        return {
            "incidents": [
                SimpleNamespace(
                    topic="midwatch.incidents",
                    partition=0,
                    offset=n,
                    timestamp=1000 + n,
                    value=self.log.values[n],
                )
                for n in range(begin, self.at)
            ]
        }

    def commit(self, positions: Mapping[Any, Any]) -> None:
        self.log.committed = max(entry.offset for entry in positions.values())


class Notes:
    """Redis, beyond any crash of the reader."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[int, int]] = {}

    def of(self, places: Iterable[str]) -> dict[str, dict[int, int]]:
        return {place: dict(self.kept.get(place, {})) for place in places}

    def add(self, ends: Mapping[str, Mapping[int, int]]) -> None:
        for place, by_id in ends.items():
            self.kept.setdefault(place, {}).update(by_id)


class Receiver(IncidentExport):
    """A collector that may be away."""

    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []
        self.events: list[IncidentEvent] = []
        self.takes_spans = self.takes_events = True

    def export_spans(self, spans: Sequence[SpanRecord]) -> bool:
        self.spans += spans if self.takes_spans else ()
        return self.takes_spans

    def export_events(self, events: Sequence[IncidentEvent]) -> bool:
        self.events += events if self.takes_events else ()
        return self.takes_events

    def close(self) -> None: ...


@dataclass
class World:
    """What outlives the trace process."""

    patch: pytest.MonkeyPatch
    log: Log = field(default_factory=lambda: Log([codec.encode(record) for record in RECORDS]))
    notes: Notes = field(default_factory=Notes)
    receiver: Receiver = field(default_factory=Receiver)

    def start(self) -> Tracing:
        self.patch.setattr(worker, "plain_consumer", lambda *_, **__: Reader(self.log))
        return Tracing(Settings(), self.receiver, cast(Emitted, self.notes))

    def run(self) -> None:
        """One life, until all is read or it dies."""
        tracing = self.start()
        while self.log.committed < len(self.log.values):
            assert tracing.turn()

    def names(self) -> list[str]:
        return [span.kind.name for span in self.receiver.spans]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


WHOLE = ["incident", "line", "hit", "settle", "decision", "command", "answer", "outcome"]


@pytest.mark.parametrize("point", range(1, 12))
def test_killed_behind_any_note_nothing_is_lost_and_nothing_comes_twice(point: int, world: World) -> None:
    left = [point]

    def failpoint(name: str) -> None:
        left[0] -= name == "noted"
        if name == "noted" and left[0] == 0:
            raise Died

    world.patch.setattr(worker, "failpoint", failpoint)
    for _ in range(3):
        try:
            world.run()
        except Died:
            continue
    assert world.names() == WHOLE
    assert len(world.receiver.events) == 4


def test_killed_between_the_collectors_answer_and_the_note_spans_come_again_with_their_ids(
    world: World,
) -> None:
    def die(name: str) -> None:
        if name == "exported":
            raise Died

    with world.patch.context() as patch:
        patch.setattr(worker, "failpoint", die)
        with pytest.raises(Died):
            world.run()
    world.run()
    spans = world.receiver.spans
    assert len(spans) > len(WHOLE)
    assert len({span.span for span in spans}) == len(WHOLE)
    assert len(set(map(repr, spans))) == len(WHOLE)


def test_the_same_records_once_more_export_nothing(world: World) -> None:
    world.run()
    world.log.values += world.log.values
    world.run()
    assert world.names() == WHOLE
    assert len(world.receiver.events) == 4


def test_what_comes_again_when_redis_has_lost_its_notes_is_still_exported_once(world: World) -> None:
    tracing = world.start()
    while world.log.committed < len(world.log.values):
        assert tracing.turn()
    world.notes.kept.clear()
    world.log.values += world.log.values
    while world.log.committed < len(world.log.values):
        assert tracing.turn()
    assert world.names() == WHOLE
    assert len(world.receiver.events) == 4


def test_what_is_remembered_beside_redis_is_bounded(world: World) -> None:
    world.patch.setattr(worker, "_REMEMBERED", 2)
    tracing = world.start()
    world.log.values[:] = [codec.encode(replace(INCIDENT, id=f"{INCIDENT.job}#{n}")) for n in range(5)]
    while world.log.committed < len(world.log.values):
        assert tracing.turn()
    assert list(tracing._remembered) == [f"{INCIDENT.job}#{n}" for n in (3, 4)]


def test_while_the_collector_is_away_nothing_is_committed_and_later_all_comes(world: World) -> None:
    tracing = world.start()
    world.receiver.takes_spans = False
    assert not tracing.turn()
    assert not tracing.turn()
    assert world.log.committed == 0
    assert "the collector does not take spans" in tracing.health().reasons[0]
    world.receiver.takes_spans = True
    while world.log.committed < len(world.log.values):
        assert tracing.turn()
    assert world.names() == WHOLE
    assert tracing.health().ready


def test_while_the_collector_is_away_all_that_waits_is_counted_and_the_process_is_not_ready(
    world: World,
) -> None:
    tracing, kept = world.start(), Kept()
    tracing.export(kept)
    assert tracing.turn()

    def read(metric: names.Metric) -> float:
        ((value, _),) = kept.reads[metric.name]()
        return value

    assert (read(names.TELEMETRY_LATE), read(names.READY)) == (len(RECORDS) - 2, 1)
    world.receiver.takes_spans = False
    before = read(names.ALIVE)
    assert not tracing.turn()
    world.log.values += [codec.encode(replace(INCIDENT, id="another"))] * 3
    assert not tracing.turn()
    assert (read(names.TELEMETRY_LATE), read(names.READY)) == (len(RECORDS) - 2 + 3, 0)
    assert read(names.ALIVE) == before
    world.receiver.takes_spans = True
    while world.log.committed < len(world.log.values):
        assert tracing.turn()
    assert (read(names.TELEMETRY_LATE), read(names.READY)) == (0, 1)


def test_log_records_that_were_not_taken_bring_no_span_again(world: World) -> None:
    tracing = world.start()
    world.receiver.takes_events = False
    assert not tracing.turn()
    world.receiver.takes_events = True
    while world.log.committed < len(world.log.values):
        assert tracing.turn()
    assert world.names() == WHOLE


def test_a_record_that_nobody_can_read_holds_nothing_back(world: World) -> None:
    world.log.values.insert(0, b"{")
    world.run()
    assert world.names() == WHOLE
