"""An outgoing record survives the outbox as it is, and its id says where it came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.streams.errors import MalformedRecord
from midwatch.streams.worker.fold import Send
from midwatch.streams.worker.tables import ids, wire

maybe_bytes = st.none() | st.binary(max_size=200)
sends = st.builds(
    Send,
    topic=st.text(min_size=1, max_size=30),
    key=maybe_bytes,
    value=maybe_bytes,
    headers=st.lists(st.tuples(st.text(max_size=10), st.binary(max_size=30)), max_size=4).map(tuple),
    partition=st.none() | st.integers(min_value=0, max_value=9999),
)


@given(sends)
def test_a_record_comes_out_of_the_outbox_as_it_went_in(send: Send) -> None:
    assert wire.unpack(wire.pack(send)) == send


@given(send=sends, cut=st.integers(min_value=0, max_value=400))
def test_a_cut_entry_is_refused_or_is_no_other_record(send: Send, cut: int) -> None:
    packed = wire.pack(send)
    if cut >= len(packed):
        return
    try:
        found = wire.unpack(packed[:cut])
    except MalformedRecord:
        return
    # A cut between two headers cannot be seen from inside; Redis stores an entry whole or not at all.
    assert found.headers == send.headers[: len(found.headers)]


@given(
    topic=st.from_regex(r"[a-z][a-z.]{0,20}", fullmatch=True),
    partition=st.integers(min_value=0, max_value=999),
    offset=st.integers(min_value=0, max_value=2**50),
    number=st.integers(min_value=0, max_value=10_000),
)
def test_an_id_names_its_source_and_its_input(topic: str, partition: int, offset: int, number: int) -> None:
    entry = ids.entry_id(offset, number)
    source, found = ids.parse_id(ids.format_id(topic, partition, entry))
    assert source == f"{topic}/{partition}".encode()
    assert found == entry
    assert ids.input_offset(found) == offset


@pytest.mark.parametrize(
    "text", [b"", b"events", b"events/3", b"/5-0", b"events/3/5", b"events/3/5-x", b"e/-"]
)
def test_what_is_no_id_is_refused(text: bytes) -> None:
    with pytest.raises(MalformedRecord):
        ids.parse_id(text)


def test_ids_are_ordered_by_number_not_by_text() -> None:
    assert ids.parse_entry(b"9-11") < ids.parse_entry(b"10-2")
    assert ids.parse_entry(b"10-9") < ids.parse_entry(b"10-10")
