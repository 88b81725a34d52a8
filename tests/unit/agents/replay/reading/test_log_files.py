"""Lines of a saved log, whichever way they end: a line feed, a return and a line feed, or nothing."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.output import as_text
from midwatch.agents.replay.reading.log_files import (
    LogFile,
    last_lines,
    line_of,
    lines_behind,
    lines_beside,
    text_of,
)
from midwatch.agents.replay.went_on.process_ends import process_ends
from midwatch.streams.lines.normalise import LONGEST_LINE
from unit.agents.conftest import Watch


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_last_line_needs_no_line_feed(end: str) -> None:
    file = LogFile("toy.log", f"the toy starts\nthe toy starts{end}".encode(), 0.0)
    whole = b"the toy starts"
    assert list(lines_beside(file, {b"toy starts"})) == [(0, 1, whole), (15, 2, whole)]


@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_without_the_piece_stand_beside_it(end: str) -> None:
    file = LogFile("toy.log", f"the toy starts\nthe toy ends{end}".encode(), 0.0)
    assert [number for _, number, _ in lines_beside(file, {b"starts"})] == [1, 2]
    assert list(lines_beside(file, {b"falls"})) == []


RAISED = (
    "Traceback (most recent call last):\n"
    '  File "toy.py", line 9, in <module>\n'
    "    paint()\n"
    "KeyError: 'wheels'\n"
    "the next toy\n"
)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n"])
def test_returns_in_front_of_line_feeds_belong_to_no_line(end: str) -> None:
    file = LogFile("toy.log", RAISED.replace("\n", end).encode(), 0.0)
    assert list(lines_behind(file, 3)) == ["KeyError: 'wheels'", "the next toy"]
    assert [line.rstrip() for _, line in last_lines(file)[-2:]] == [b"KeyError: 'wheels'", b"the next toy"]
    assert line_of(file, 4) == "KeyError: 'wheels'"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n", "  \n"])
def test_each_byte_stays_in_its_place(end: str) -> None:
    content = RAISED.replace("\n", end).encode()
    text = text_of(LogFile("toy.log", content, 0.0))
    assert len(text) == len(content)
    (raised,) = process_ends(text)
    assert (raised.script, raised.function, raised.number, raised.sure) == (b"toy.py", b"<module>", 5, True)
    assert content[raised.offset :].decode() == "the next toy" + end


def test_a_file_of_many_megabytes_is_read_whole_only_if_it_tells_of_an_end() -> None:
    toys = b"the toy is painted, and dries on a shelf of its own\n" * 70_000
    assert len(toys) > 3 << 20
    assert text_of(LogFile("toy.log", toys, 0.0)) == b""
    ended = toys + RAISED.encode() + toys
    assert text_of(LogFile("toy.log", ended, 0.0)) == ended
    assert text_of(LogFile("toy.log", ended * 5, 0.0)) == b""


@pytest.mark.parametrize("colour", ["", "\x1b[31m"])
def test_a_root_line_is_shown_whole_though_a_hit_keeps_its_beginning(watch: Watch, colour: str) -> None:
    line = f"ValueError: the toy {'ä' * 3000} broke"
    assert watch(f"toy\n{colour}{line}\n").verdict.root_line == line


def test_of_a_root_line_without_end_the_beginning_is_shown(watch: Watch) -> None:
    root = watch(f"ValueError: the toy {'x' * 40_000} broke\n").verdict.root_line
    assert len(root) == LONGEST_LINE


def test_a_secret_far_back_in_a_root_line_stays_out(watch: Watch) -> None:
    root = watch(f"ValueError: {'toy ' * 700} password=hunter2hunter2 is refused\n").verdict.root_line
    assert root.endswith("password=*** is refused")


def test_a_terminal_is_shown_the_beginning_of_a_long_root_line(watch: Watch) -> None:
    shown = "\n".join(as_text(watch(f"ValueError: the toy {'x' * 5000} broke\n")))
    assert "x [...]" in shown
    assert len(shown) < 5000
