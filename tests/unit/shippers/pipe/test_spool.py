"""The copy of a pipe between the training and the shipper: in order, bounded, honest about losses."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.shippers.files.tail import Now, ReadBlock
from midwatch.shippers.pipe.spool import Backlog, Spool, segments
from midwatch.shippers.pipe.spool_watch import SpoolWatch
from midwatch.shippers.sending.chunker import Chunker
from midwatch.streams.records import Generation
from unit.shippers.reading import ORIGIN, lines_of

STREAM = Generation(0, 0, "stream")


class Consumer:
    """Reads a spool as the sidecar does."""

    def __init__(self, folder: Path, remembered: SpoolWatch | None = None) -> None:
        known = remembered.remembered() if remembered else ()
        self.watch = SpoolWatch(folder, STREAM, known, over=lambda: False)
        self.chunker = Chunker(ORIGIN, 256 * 1024)
        self.at = 0.0

    def look(self, *, acknowledge: bool = True) -> list[tuple[int, int, str]]:
        self.at += 0.2
        now = Now(self.at, self.at)
        self.watch.poll(now)
        blocks: list[ReadBlock] = []
        for tail in self.watch.tails:
            while block := tail.read(64 * 1024, now):
                blocks.append(block)
        seen = []
        for parcel in self.chunker.parcels(blocks):
            seen += [(offset, number, text) for _, offset, number, text in lines_of(parcel)]
            if acknowledge:
                for generation, position in parcel.ends:
                    self.watch.acknowledge(generation, position)
        return seen

    def all(self) -> list[tuple[int, int, str]]:
        out = []
        while not self.watch.ended:
            out += self.look()
        return out


def spooled(folder: Path, stream: list[bytes], *, segment: int = 1000, bound: int = 1 << 20) -> None:
    backlog, spool = Backlog(), Spool(folder, bound, segment)
    for data in stream:
        backlog.add(data)
        piece = backlog.take()
        assert piece is not None
        assert spool.write(*piece)[1] == b""
    spool.finish()


def expected(raw: bytes) -> list[tuple[int, int, str]]:
    out, offset = [], 0
    for number, line in enumerate(raw.splitlines(keepends=True), 1):
        out.append((offset, number, line.rstrip(b"\n").decode()))
        offset += len(line)
    return out


@settings(max_examples=cases(60))
@given(st.lists(st.sampled_from([b"line\n", b"half ", b"x" * 700, b"\n", b"y" * 3000 + b"\n"]), max_size=30))
def test_the_stream_arrives_as_it_was(tmp_path_factory: pytest.TempPathFactory, stream: list[bytes]) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spooled(folder, stream)
    consumer = Consumer(folder)
    seen = consumer.all()
    raw = b"".join(stream)
    if b"x" * 700 not in raw:  # a line longer than two files is cut where the second ends
        assert seen == expected(raw)
    assert "".join(text for *_, text in seen) == raw.replace(b"\n", b"").decode()
    assert consumer.watch.dropped == 0


def test_files_go_once_they_have_arrived(tmp_path: Path) -> None:
    spooled(tmp_path, [b"line %d\n" % i for i in range(1000)])
    assert len(segments(tmp_path)) > 5
    Consumer(tmp_path).all()
    assert len(segments(tmp_path)) <= 2


def test_a_shipper_that_died_goes_on_where_the_broker_has_it(tmp_path: Path) -> None:
    spooled(tmp_path, [b"line %d\n" % i for i in range(1000)])
    first = Consumer(tmp_path)
    arrived = [line for _ in range(3) for line in first.look()]
    first.look(acknowledge=False)
    rest = Consumer(tmp_path, first.watch).all()
    assert arrived + rest == expected(b"".join(b"line %d\n" % i for i in range(1000)))


def test_beyond_the_bound_the_oldest_goes_and_is_counted(tmp_path: Path) -> None:
    raw = b"".join(b"line %d\n" % i for i in range(5000))
    spooled(tmp_path, [raw[i : i + 100] for i in range(0, len(raw), 100)], segment=2000, bound=10_000)
    assert sum(s.path.stat().st_size for s in segments(tmp_path)) <= 10_000
    consumer = Consumer(tmp_path)
    seen = consumer.all()
    assert seen == expected(raw)[-len(seen) :]
    assert consumer.watch.dropped == seen[0][0] > 30_000


def test_memory_is_bounded_too() -> None:
    backlog = Backlog(bound=1000)
    for i in range(100):
        backlog.add(b"%099d\n" % i)
    assert (backlog.size, backlog.dropped) == (1000, 9000)
    piece = backlog.take()
    assert piece is not None
    assert (piece[0].offset, piece[0].number) == (9000, 91)


def test_a_disk_that_takes_nothing_gives_everything_back(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "missing")
    backlog = Backlog()
    backlog.add(b"line\n")
    piece = backlog.take()
    assert piece is not None
    assert spool.write(*piece) == piece
    backlog.put_back(*piece)
    assert backlog.size == 5
