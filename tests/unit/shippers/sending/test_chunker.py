"""Chunks: whole lines, bounded, and a traceback that a cut divides still arrives as one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.shippers.files.tail import FilePosition, Now, ReadBlock, Tail
from midwatch.shippers.sending.chunker import Chunker, Parcel
from midwatch.streams.records import Chunk, Generation
from midwatch.streams.records.codec import decode_log, encode_log
from unit.shippers.reading import ORIGIN, lines_of

ONE, TWO = Generation(1, 1, "a"), Generation(1, 2, "b")


def block(raw: bytes, start: FilePosition | None = None, generation: Generation = ONE) -> ReadBlock:
    start = start or FilePosition()
    end = FilePosition(start.offset + len(raw), start.number + raw.count(b"\n"), not raw.endswith(b"\n"))
    return ReadBlock("train.log", generation, start, end, raw, 0.0, 1.0)


def blocks(*raws: bytes, generation: Generation = ONE) -> list[ReadBlock]:
    out: list[ReadBlock] = []
    for raw in raws:
        out.append(block(raw, out[-1].end if out else None, generation))
    return out


def chunker(limit: int = 256 * 1024) -> Chunker:
    return Chunker(ORIGIN, limit)


def texts(parcel: Parcel) -> list[str]:
    return [text for *_, text in lines_of(parcel)]


def test_the_files_of_a_node_travel_in_one_chunk() -> None:
    (parcel,) = chunker().parcels([block(b"a\nb\n"), block(b"c\n", generation=TWO)])
    assert parcel.chunk.text == b"a\nb\nc\n"
    assert [(s.size, s.lines, s.end) for s in parcel.chunk.sections] == [(4, 2, 4), (2, 1, 2)]
    assert dict(parcel.ends) == {ONE: FilePosition(4, 3), TWO: FilePosition(2, 2)}


def test_a_chunk_is_cut_at_its_limit() -> None:
    parcels = list(chunker(5000).parcels(blocks(*[b"x" * 999 + b"\n"] * 12)))
    assert [p.chunk.text.count(b"\n") for p in parcels] == [4, 4, 4]
    assert [dict(p.ends)[ONE].offset for p in parcels] == [4000, 8000, 12000]


def test_a_chunk_with_an_anchor_for_every_line_stays_a_message_that_kafka_takes() -> None:
    raw = b"x\r\n" * 80_000
    parcels = list(chunker().parcels([block(raw)]))
    seen = [line for p in parcels for line in lines_of(p)]
    assert [(offset, number) for _, offset, number, _ in seen] == [(3 * i, i + 1) for i in range(80_000)]
    for parcel in parcels:
        message = encode_log(parcel.chunk)
        size = len(message.value) + sum(len(value) for _, value in message.headers)
        assert size < 700_000
        assert abs(size - parcel.size) < size // 3
    assert dict(parcels[-1].ends)[ONE] == FilePosition(len(raw), 80_001)


def test_a_chunk_survives_the_wire() -> None:
    (parcel,) = chunker().parcels([block(b"a\r\nb\n")])
    message = encode_log(parcel.chunk)
    assert decode_log(message.value, message.headers) == parcel.chunk


TRACE = (
    b"[rank3]: Traceback (most recent call last):\n"
    b'[rank3]:   File "train.py", line 7, in <module>\n'
    b"step 12\n"
    b"[rank3]:     loss.backward()\n"
)


def test_a_traceback_cut_between_chunks_is_repeated_before_its_last_line() -> None:
    cutter = chunker()
    first, rest = blocks(b"step 11\n" + TRACE, b"[rank3]: RuntimeError: out of luck\nstep 13\n")
    list(cutter.parcels([first]))
    (parcel,) = cutter.parcels([rest])
    (section,) = parcel.chunk.sections
    assert section.context == 3
    assert parcel.chunk.text.decode().splitlines() == [
        "[rank3]: Traceback (most recent call last):",
        '[rank3]:   File "train.py", line 7, in <module>',
        "[rank3]:     loss.backward()",
        "[rank3]: RuntimeError: out of luck",
        "step 13",
    ]
    assert [a.number for a in section.anchors] == [2, 3, 5, 6]
    assert texts(parcel) == ["[rank3]: RuntimeError: out of luck", "step 13"]
    (after,) = cutter.parcels(blocks(first.raw + rest.raw, b"step 14\n")[1:])
    assert after.chunk.sections[0].context == 0


@pytest.mark.parametrize("how", ["a new start", "a broker that came back"])
def test_a_traceback_goes_on_though_the_shipper_begins_again_within_it(tmp_path: Path, how: str) -> None:
    file = tmp_path / "train.log"
    old = b"step 10\n" * 20_000 + b"step 11\n" + TRACE
    file.write_bytes(old)
    descriptor = os.open(file, os.O_RDONLY)
    tail = Tail(descriptor, str(file), ONE, FilePosition())
    tail.look(Now(1.0, 1.0))
    cutter = chunker(1 << 20)
    while read := tail.read(1 << 20, Now(1.0, 1.0)):
        list(cutter.parcels([read]))
    tail.acknowledged = sent = tail.position
    with file.open("ab") as more:
        more.write(b"[rank3]: RuntimeError: out of luck\n")
    if how == "a new start":
        cutter, tail = chunker(), Tail(descriptor, str(file), ONE, sent)
    else:
        cutter.forget()
        tail.rewind()
    tail.look(Now(2.0, 2.0))
    read = tail.read(1 << 20, Now(2.0, 2.0))
    assert read is not None
    ((parcel,),) = [list(cutter.parcels([read]))]
    assert parcel.chunk.sections[0].context == 3
    assert [a.number for a in parcel.chunk.sections[0].anchors] == [20_002, 20_003, 20_005, 20_006]
    assert texts(parcel) == ["[rank3]: RuntimeError: out of luck"]
    tail.close()


def test_each_rank_has_a_traceback_of_its_own() -> None:
    cutter = chunker()
    both = TRACE + TRACE.replace(b"rank3", b"rank4")
    first, second, third = blocks(both, b"[rank4]: ValueError: x\n", b"[rank3]: RuntimeError: y\n")
    list(cutter.parcels([first]))
    assert next(iter(cutter.parcels([second]))).chunk.sections[0].context == 6
    assert next(iter(cutter.parcels([third]))).chunk.sections[0].context == 3


def test_a_traceback_of_one_file_is_not_repeated_in_another() -> None:
    cutter = chunker()
    list(cutter.parcels([block(TRACE)]))
    (parcel,) = cutter.parcels([block(b"step\n", generation=TWO)])
    assert [s.context for s in parcel.chunk.sections] == [0]


@pytest.mark.parametrize("ranks", [1, 200])
def test_context_is_bounded(ranks: int) -> None:
    cutter = chunker()
    trace = b"".join(
        b"[rank%d]: Traceback (most recent call last):\n" % rank
        + b"[rank%d]:   %s\n" % (rank, b"f" * 90) * 500
        for rank in range(ranks)
    )
    first, second = blocks(trace, b"step\n")
    list(cutter.parcels([first]))
    (parcel,) = cutter.parcels([second])
    (section,) = parcel.chunk.sections
    assert section.context <= 64 * ranks
    assert section.size <= 64 * 1024 + 5
    assert section.context >= 64


PIECES = [b"step 1\n", b"x\r\n", b"\x1b[1mbold\x1b[0m\n", TRACE, b"[rank3]: KeyError: 3\n", b"a\rb\n"]


@settings(max_examples=cases(100))
@given(
    st.lists(st.tuples(st.sampled_from(PIECES), st.booleans()), min_size=1, max_size=30),
    st.integers(20, 4000),
)
def test_every_line_is_in_exactly_one_chunk_at_its_place(parts: list[tuple[bytes, bool]], limit: int) -> None:
    pieces = [piece for piece, _ in parts]
    groups: list[bytes] = []
    for piece, joined in parts:
        if groups and joined:
            groups[-1] += piece
        else:
            groups.append(piece)
    cutter = chunker(limit)
    seen = [line for b in blocks(*groups) for p in cutter.parcels([b]) for line in lines_of(p)]
    whole = [line for p in chunker().parcels([block(b"".join(pieces))]) for line in lines_of(p)]
    assert seen == whole


def test_a_chunk_is_of_its_origin() -> None:
    (parcel,) = chunker().parcels([block(b"a\n")])
    assert isinstance(parcel.chunk, Chunk)
    assert parcel.chunk.origin == ORIGIN
