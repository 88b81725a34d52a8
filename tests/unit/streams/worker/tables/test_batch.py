"""A batch folds records onto a copy of the state, and one bad record does not stop the others."""

# ruff: noqa: ARG002 (a Fold is given more than this one needs)

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pytest

from midwatch.streams.errors import NewerRecord
from midwatch.streams.records import DeadLetter
from midwatch.streams.records.codec import decode
from midwatch.streams.worker.fold import PARTITION, SEND_LIMIT, Applied, ContentMissing, Fields, Message, Send
from midwatch.streams.worker.tables import ids
from midwatch.streams.worker.tables.batch import NOW, OWN, Batch


@dataclass(frozen=True)
class Counter:
    """Counts per key and tells the count on; some values make it fail in each way that a fold can."""

    hold_fails: bool = False
    at_hand: Collection[str] = ()

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:
        if message.value == b"no keys":
            raise ValueError("keys failed")
        return (message.key or b"",)

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        key = message.key or b""
        count = int(states[key].get(b"count", b"0")) + 1
        match message.value:
            case b"boom":
                raise RuntimeError("boom")
            case b"newer":
                raise NewerRecord("version 9")
            case b"needs a" if "a" not in self.at_hand:
                raise ContentMissing("a")
            case b"large":
                return Applied({}, (Send("out", key, b"x" * (SEND_LIMIT + 1)),))
            case b"foreign":
                return Applied({b"another job": {b"count": b"1"}})
            case b"look":
                return Applied({}, (Send("out", key, b",".join(sorted(states))),))
            case b"clear":
                return Applied({key: {b"count": None}})
        return Applied({key: {b"count": b"%d" % count}}, (Send("out", key, b"%d" % count),))

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        if self.hold_fails:
            raise RuntimeError("no hold either")
        return Applied({message.key or b"": {b"held": b"1"}}) if message.key in states else Applied()

    def next_deadline(self, partition: Fields) -> int | None:
        return None

    def tick_value(self) -> bytes:
        return b""


def message(
    offset: int,
    value: bytes = b"count",
    key: bytes = b"job",
    *,
    now_ms: int = 1000,
    headers: tuple[tuple[str, bytes], ...] = (),
) -> Message:
    return Message("events", 3, offset, now_ms, now_ms, key, value, headers)


def batch(fold: Counter | None = None, *, mute_below: int = 0, marked: bool = False) -> Batch:
    states: dict[bytes, Fields] = {PARTITION: {}, OWN: {}}
    return Batch(fold or Counter(), states, 9, "dead", mute_below=mute_below, marked=marked)


def feed(work: Batch, *messages: Message, stored: Mapping[bytes, Fields] | None = None) -> list[bool]:
    taken = []
    for record in messages:
        for key in work.missing(record):
            work.states[key] = (stored or {}).get(key, {})
        taken.append(work.apply(record))
    return taken


def test_the_write_spans_the_batch_and_holds_only_what_changed() -> None:
    work = batch()
    feed(
        work,
        message(10),
        message(11),
        message(12, key=b"other"),
        stored={b"job": {b"count": b"5", b"x": b"y"}},
    )
    write = work.write()
    assert write is not None
    assert (write.expected, write.offset) == (9, 12)
    assert write.changed[b"job"] == {b"count": b"7"}
    assert write.changed[b"other"] == {b"count": b"1"}
    assert [entry for entry, _ in write.outbox] == [(11, 0), (12, 0), (13, 0)]
    assert work.copies()[b"job"] == {b"count": b"7", b"x": b"y"}


def test_the_state_given_to_a_batch_is_never_changed() -> None:
    """If the write fails, the copies at hand must still be what Redis holds."""
    stored = {b"job": {b"count": b"5"}}
    feed(batch(), message(10), stored=stored)
    assert stored == {b"job": {b"count": b"5"}}


def test_a_deleted_field_is_gone_from_the_copy_and_deleted_in_the_write() -> None:
    work = batch()
    feed(work, message(10), message(11, b"clear"))
    write = work.write()
    assert write is not None
    assert write.changed[b"job"] == {b"count": None}
    assert work.copies()[b"job"] == {}


def test_a_record_that_raises_is_dead_lettered_its_job_held_and_the_next_one_taken() -> None:
    work = batch()
    assert feed(work, message(10, b"boom"), message(11)) == [True, True]
    write = work.write()
    assert write is not None
    assert write.offset == 11
    assert write.changed[b"job"] == {b"held": b"1", b"count": b"1"}
    letter = work.outgoing[0][1]
    assert (letter.topic, letter.key) == ("dead", b"events/3/10")
    assert letter.value is not None
    assert decode(letter.value) == DeadLetter(
        "events", 3, 10, "RuntimeError: boom", b"boom", b"job", "failed"
    )
    assert work.tally.poisoned == 1


def test_a_hold_that_raises_in_turn_changes_nothing_and_stops_nothing() -> None:
    work = batch(Counter(hold_fails=True))
    assert feed(work, message(10, b"boom"), message(11)) == [True, True]
    assert [send.topic for _, send in work.outgoing] == ["dead", "out"]
    assert len(work.poisons) == 2


def test_a_record_whose_keys_cannot_be_told_is_dead_lettered() -> None:
    work = batch()
    assert feed(work, message(10, b"no keys")) == [True]
    assert work.outgoing[0][1].topic == "dead"


def test_a_record_too_large_for_kafka_is_dead_lettered_not_tried_for_ever() -> None:
    work = batch()
    feed(work, message(10, b"large"))
    assert [send.topic for _, send in work.outgoing] == ["dead"]


def test_a_fold_may_not_change_what_it_did_not_ask_for() -> None:
    work = batch()
    feed(work, message(10, b"foreign"))
    assert [send.topic for _, send in work.outgoing] == ["dead"]
    assert b"another job" not in work.copies()


def test_a_fold_sees_the_same_state_wherever_the_batch_was_cut() -> None:
    """Other jobs of the batch are loaded too, but not shown: else the answer would depend on the cut."""
    work = batch()
    feed(work, message(10, key=b"other"), message(11, b"look"))
    assert work.outgoing[-1][1].value == b",".join(sorted([PARTITION, b"job"]))


def test_a_newer_record_stops_the_partition_before_it() -> None:
    work = batch()
    assert feed(work, message(10), message(11, b"newer")) == [True, False]
    write = work.write()
    assert write is not None
    assert write.offset == 10
    assert work.stopped == "version 9"


def test_a_newer_record_at_the_front_leaves_nothing_to_write() -> None:
    work = batch()
    feed(work, message(10, b"newer"))
    assert work.write() is None


def test_sends_below_the_mute_mark_are_left_out_and_state_is_not() -> None:
    work = batch(mute_below=11)
    feed(work, message(10), message(11))
    assert [entry for entry, _ in work.outgoing] == [(12, 0)]
    assert work.copies()[b"job"] == {b"count": b"2"}
    assert work.tally.muted == 1


def test_now_is_the_highest_append_time_and_is_kept() -> None:
    work = batch()
    assert work.now_ms(1000) == 1000
    feed(work, message(10, now_ms=1000))
    assert work.now_ms(700) == 1000
    assert work.copies()[OWN][NOW] == b"1000"


def marked_message(offset: int, entry: ids.EntryId, source: int = 0) -> Message:
    return message(offset, headers=((ids.HEADER, ids.format_id("hits", source, entry)),))


def test_a_record_sent_twice_upstream_counts_once() -> None:
    work = batch(marked=True)
    feed(work, marked_message(10, (5, 0)), marked_message(11, (5, 1)), marked_message(12, (5, 0)))
    assert work.copies()[b"job"] == {b"count": b"2"}
    assert work.tally.below_mark == 1
    write = work.write()
    assert write is not None
    assert write.offset == 12


def test_marks_are_kept_per_source_partition() -> None:
    work = batch(marked=True)
    feed(work, marked_message(10, (5, 0), source=0), marked_message(11, (3, 0), source=1))
    assert work.copies()[b"job"] == {b"count": b"2"}


def test_a_record_without_an_id_is_always_taken() -> None:
    """Ticks and activations are written by the owner itself and carry none."""
    work = batch(marked=True)
    feed(work, marked_message(10, (5, 0)), message(11))
    assert work.copies()[b"job"] == {b"count": b"2"}


def test_an_id_that_is_none_of_ours_is_dead_lettered() -> None:
    work = batch(marked=True)
    feed(work, message(10, headers=((ids.HEADER, b"nonsense"),)))
    assert work.outgoing[0][1].topic == "dead"
    assert work.copies()[b"job"] == {b"held": b"1"}


def test_a_record_that_needs_content_that_is_not_at_hand_is_neither_taken_nor_set_aside() -> None:
    at_hand: list[str] = []
    work = batch(Counter(at_hand=at_hand))
    feed(work, message(10))
    with pytest.raises(ContentMissing):
        feed(work, message(11, b"needs a"))
    assert (work.tally.applied, work.tally.refused, len(work.outgoing)) == (1, [], 1)
    at_hand.append("a")
    assert feed(work, message(11, b"needs a"), message(12)) == [True, True]
    assert [send.value for _, send in work.outgoing] == [b"1", b"2", b"3"]
