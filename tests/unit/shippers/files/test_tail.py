"""The end of a growing file: unfinished lines, progress bars, and the NULs of network file systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.shippers.files.tail import HOLD, PATIENCE
from midwatch.streams.lines.normalise import LONGEST_LINE, LONGEST_RAW_LINE
from unit.shippers.reading import Reader


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


def append(path: Path, raw: bytes) -> None:
    with path.open("ab") as file:
        file.write(raw)


def test_an_unfinished_line_waits_for_its_end(log: Path) -> None:
    append(log, b"one\nhalf of ")
    reader = Reader(log)
    assert reader.look() == ["one"]
    assert not reader.watch.tails[0].at_end
    append(log, b"a line\n")
    assert reader.look() == ["half of a line"]
    assert reader.watch.tails[0].at_end


def test_the_last_words_of_a_dead_process_are_sent_without_their_newline(log: Path) -> None:
    append(log, b"one\nSegmentation fau")
    reader = Reader(log)
    reader.look()
    assert reader.look() == []
    assert reader.later(HOLD).look() == ["Segmentation fau"]
    append(log, b"\ntwo\n")
    assert reader.look() == ["two"]
    assert [(offset, number) for _, offset, number, _ in reader.seen] == [(0, 1), (4, 2), (21, 3)]


def test_a_rest_that_follows_after_all_is_the_same_line_of_the_file(log: Path) -> None:
    append(log, b"loss: 3.")
    reader = Reader(log)
    reader.look()
    reader.later(HOLD).look()
    append(log, b"25\nnext\n")
    reader.look()
    assert [(number, text) for _, _, number, text in reader.seen] == [(1, "loss: 3."), (1, "25"), (2, "next")]


def test_at_the_end_nothing_is_held_back(log: Path) -> None:
    append(log, b"one\nlast words")
    assert Reader(log).look(flush=True) == ["one", "last words"]


def test_a_progress_bar_that_never_ends_its_line_is_seen_every_few_seconds(log: Path) -> None:
    reader = Reader(log)
    sent = []
    for step in range(60):
        append(log, b"\r%3d%%|#    | %d/60 [00:01<00:09]" % (step, step))
        sent += reader.look()
    append(log, b"\ndone\n")
    sent += reader.look()
    assert 3 <= len(sent) <= 8
    assert sent[-1] == "done"
    assert sent[-2].startswith(" 59%|")
    assert {number for _, _, number, _ in reader.seen[:-1]} == {1}


def test_nuls_at_the_end_may_still_become_text(log: Path) -> None:
    append(log, b"one\n" + b"\0" * 8)
    reader = Reader(log)
    assert reader.look() == ["one"]
    with log.open("r+b") as file:
        file.seek(4)
        file.write(b"arrived\n")
    append(log, b"two\n")
    assert reader.look() == ["arrived", "two"]


def test_nuls_that_stay_are_passed_over(log: Path) -> None:
    append(log, b"one\n" + b"\0" * 8)
    reader = Reader(log)
    reader.look()
    reader.later(PATIENCE).look()
    append(log, b"two\n")
    assert reader.look() == ["two"]
    assert reader.seen[-1][1] == 12


def test_the_hole_of_a_writer_that_does_not_append_costs_nothing(log: Path) -> None:
    append(log, b"")
    with log.open("r+b") as file:
        file.seek(1 << 33)
        file.write(b"after the hole\n")
    reader = Reader(log)
    for _ in range(3):
        reader.look()
    assert [(offset, text) for _, offset, _, text in reader.seen] == [(1 << 33, "after the hole")]


def test_a_line_without_an_end_does_not_fill_the_memory(log: Path) -> None:
    append(log, b"x" * (LONGEST_RAW_LINE + 100) + b"\nnext\n")
    reader = Reader(log)
    first, second, third = reader.look()
    assert len(first) <= LONGEST_LINE
    assert (second, third) == ("x" * 100, "next")
    assert [number for _, _, number, _ in reader.seen] == [1, 1, 2]


def test_the_time_of_a_line_lies_between_two_reads(log: Path) -> None:
    append(log, b"one\n")
    reader = Reader(log)
    reader.look()
    append(log, b"two\n")
    reader.later(5)
    reader.watch.poll(reader.now)
    block = reader.watch.tails[0].read(65536, reader.now)
    assert block is not None
    assert (block.read_before, block.read_at) == (1000.2, 1005.2)
