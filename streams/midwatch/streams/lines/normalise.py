"""Turns raw bytes of a log file into the lines that rules search, and finds their places in the file. Pure.

The shipper and `midwatch replay` normalise each line once, with this code. It works on one whole raw line at
a time, newline included. So the result does not depend on how a file was cut into blocks of whole lines.
No line is longer than the raw bytes that it was made from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from midwatch.streams.line_feeds import line_feeds
from midwatch.streams.lines.envelopes import envelopes, unwrapped
from midwatch.streams.lines.escapes import NO_BREAK, RESETS, has_escapes, without_escapes
from midwatch.streams.lines.redaction import redact, suspects, suspicious
from midwatch.streams.lines.times import line_time, printed_time
from midwatch.streams.records import Anchor, Section

__all__ = [
    "LONGEST_LINE",
    "LONGEST_RAW_LINE",
    "LinePlace",
    "Normalised",
    "line_places",
    "line_time",
    "locate",
    "normalise",
    "places",
    "printed_time",
    "whole_lines",
]

LONGEST_LINE = 16 * 1024
"""The most bytes of a line, without its newline. A longer line keeps its head and its tail."""

LONGEST_RAW_LINE = 1024 * 1024
"""Bytes after which a raw line without a newline is cut, so that no line can fill the memory."""

_MANY = 32  # escapes and CRs in a block above which all its lines are normalised at once

_HEAD = LONGEST_LINE // 2
_TAIL = LONGEST_LINE - _HEAD - 64  # the marker fits into what is left


@dataclass(frozen=True, slots=True)
class Normalised:
    """Lines, and where they come from. `text` ends with a newline unless it is empty.

    `anchors` are as in a `Section`. Offsets and numbers count from the arguments of `normalise`. `raw_lines`
    is the number of newlines in the block. The first number of the next block is higher by that much.
    """

    text: bytes
    anchors: tuple[Anchor, ...]
    lines: int
    raw_lines: int

    def placed(self, offset: int, number: int) -> tuple[Anchor, ...]:
        """The anchors of a block that began at `offset`, on line `number`, if `normalise` got neither."""
        return tuple(Anchor(a.index, a.offset + offset, a.number + number) for a in self.anchors)


class LinePlace(NamedTuple):
    """The place of a section's line in the original file.

    `offset` is where its raw bytes begin. `end` is where they end, newline included, if normalising did not
    change the line. Otherwise `end` is a place within them: above `offset`, never above the next line's
    beginning. So a comparison of `end` with a mark between two lines never depends on the cut of the chunks.
    """

    index: int  # type: ignore[assignment]  # it hides the method of tuples, which nobody calls
    offset: int
    number: int
    end: int


def whole_lines(raw: bytes) -> int:
    """How many leading bytes of `raw` are whole raw lines. It is 0 if the first line is incomplete.

    A raw line counts as whole after `LONGEST_RAW_LINE` bytes even without its newline.
    """
    end = raw.rfind(b"\n") + 1
    return end + (len(raw) - end) // LONGEST_RAW_LINE * LONGEST_RAW_LINE


def normalise(raw: bytes, offset: int = 0, number: int = 0) -> Normalised:
    """Turns whole raw lines into lines.

    CRLF becomes LF. Any other CR separates segments, and each segment is a line. Of a run of progress bars
    among them only the last is a line. An envelope gives the lines within it (`envelopes`). Lines have no
    terminal escapes (also spelled ones), no no-break spaces, no NULs and no secrets. Each has at most
    `LONGEST_LINE` bytes.

    The block begins at `offset` of its file, on line `number`. Normalising again changes nothing. The last
    raw line may lack its newline (a prompt, the end of a file).
    """
    raw_lines = line_feeds(raw)
    if _clean(raw):
        text = raw if not raw or raw.endswith(b"\n") else raw + b"\n"
        anchors = (Anchor(0, offset, number),) if text else ()
        return Normalised(text, anchors, raw_lines + (text is not raw), raw_lines)
    if raw.count(b"\x1b") + raw.count(b"\r") > _MANY and not any(True for _ in envelopes(raw)):
        whole = _at_once(raw, offset, number)
        if whole is not None:
            return whole
    layout = _Layout(offset, number)
    done = 0
    for start, stop in _dirty_lines(raw):
        if start > done:
            layout.unchanged(raw[done:start], done)
        for place, line in _lines_of(raw[start:stop]):
            layout.line(start + place, line)
        layout.number += 1
        done = stop
    if done < len(raw):
        layout.unchanged(raw[done:], done)
    return Normalised(b"".join(layout.parts), tuple(layout.anchors), layout.index, raw_lines)


def locate(section: Section, text: bytes, index: int) -> LinePlace:
    """The place of line `index` of a section. `text` is the section's part of the chunk's text.

    Raises:
        IndexError: the section has no such line.
    """
    if not 0 <= index < section.lines:
        raise IndexError(f"line {index} of a section of {section.lines} lines")
    anchor = section.anchors[bisect_right(section.anchors, index, key=lambda a: a.index) - 1]
    start = _skip(text, 0, anchor.index)
    return _place(section, text, (anchor, start), (index, _skip(text, start, index - anchor.index)))


def places(section: Section, text: bytes, positions: Iterable[int]) -> Iterator[LinePlace]:
    """The place of the line around each byte position of the section's text. Positions must not descend.

    One walk over the text finds all places, so use this for many hits.
    """
    starts = (text.rfind(b"\n", 0, position) + 1 for position in positions)
    lines = ((start, end if (end := text.find(b"\n", start)) >= 0 else len(text)) for start in starts)
    return map(LinePlace._make, line_places(section, text, lines))


def line_places(
    section: Section, text: bytes, lines: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int, int, int]]:
    """The fields of the `LinePlace` of each line, given by its start and end. Lines must not descend."""
    anchors = section.anchors
    last, ends, size = len(anchors) - 1, section.end, len(text)
    at = start = index = line = behind = 0  # current anchor, start of its line, and the line reached so far
    if not anchors:
        return  # a section without lines has no places
    base, number = anchors[0].offset, anchors[0].number - anchors[0].index
    for begin, end in lines:
        # Most lines follow the line before, so nothing lies between them to be counted.
        index += 1 if begin == behind and begin > line else line_feeds(text, line, begin)
        line, behind = begin, end + 1
        while at < last and anchors[at + 1].index <= index:
            start = _skip(text, start, anchors[at + 1].index - anchors[at].index)
            at += 1
            base, number = anchors[at].offset - start, anchors[at].number - anchors[at].index
        stop = base + (behind if end < size else size)
        yield index, base + line, number + index, stop if stop < ends else ends


def _skip(text: bytes, position: int, lines: int) -> int:
    for _ in range(lines):
        position = text.index(b"\n", position) + 1
    return position


def _place(section: Section, text: bytes, known: tuple[Anchor, int], target: tuple[int, int]) -> LinePlace:
    """The place of a later line (index, start), from an anchor and its line's start in the text."""
    (anchor, start), (index, line) = known, target
    offset = anchor.offset + line - start
    stop = text.find(b"\n", line) + 1 or len(text)
    return LinePlace(
        index, offset, anchor.number + index - anchor.index, min(offset + stop - line, section.end)
    )


class _Layout:
    """Lines, one after the other, with an anchor for each that does not directly follow the line before."""

    def __init__(self, offset: int, number: int) -> None:
        self.parts: list[bytes] = []
        self.anchors: list[Anchor] = []
        self.index = 0
        self.number = number
        self._base = offset
        self._expected = (-1, -1)

    def unchanged(self, raw: bytes, offset: int) -> None:
        if not raw.endswith(b"\n"):
            raw += b"\n"
        self._anchor(offset)
        self.parts.append(raw)
        count = line_feeds(raw)
        self.index += count
        self.number += count
        self._expected = (offset + len(raw), self.number)

    def line(self, offset: int, line: bytes) -> None:
        self._anchor(offset)
        self.parts += (line, b"\n")
        self.index += 1
        self._expected = (offset + len(line) + 1, self.number + 1)

    def _anchor(self, offset: int) -> None:
        if self._expected != (offset, self.number):
            self.anchors.append(Anchor(self.index, self._base + offset, self.number))


def _clean(raw: bytes) -> bool:
    """Whether normalising changes nothing. For a healthy log a few fast searches decide this."""
    return not (
        b"\r" in raw
        or has_escapes(raw)
        or b"\0" in raw
        or suspicious(raw)
        or any(True for _ in envelopes(raw))
        or any(True for _ in _long_lines(raw))
    )


def _at_once(raw: bytes, offset: int, number: int) -> Normalised | None:
    """Normalises a block with many escapes and CRLFs. None unless each raw line gives one line."""
    if b"\0" in raw or raw.count(b"\r") != raw.count(b"\r\n") or _longest(raw) > LONGEST_RAW_LINE:
        return None
    before = raw.removesuffix(b"\n").split(b"\n")
    text = without_escapes(raw.removesuffix(b"\n").replace(b"\r\n", b"\n").removesuffix(b"\r"))
    after = text.split(b"\n")
    index = position = 0
    for start, stop in sorted({*_spans(text, suspects(text)), *_long_lines(text)}):
        index, position = index + line_feeds(text, position, start), start
        after[index] = _safe(text[start:stop].removesuffix(b"\n"))
    anchors = [Anchor(0, offset, number)]
    moved = False
    for index, (old, new) in enumerate(zip(map(len, before), map(len, after), strict=True)):
        if moved:
            anchors.append(Anchor(index, offset, number + index))
        moved = old != new
        offset += old + 1
    after.append(b"")
    return Normalised(b"\n".join(after), tuple(anchors), len(before), line_feeds(raw))


def _dirty_lines(raw: bytes) -> list[tuple[int, int]]:
    """Spans of the raw lines that normalising may change."""
    found: dict[int, int] = {}
    for mark in (b"\r", b"\x1b", b"\0", NO_BREAK, *RESETS):
        position = raw.find(mark)
        while position >= 0:
            start, stop = _raw_line(raw, position)
            found[start] = stop
            position = raw.find(mark, stop)
    found |= dict(_spans(raw, suspects(raw)))
    found |= dict(_spans(raw, sorted(envelopes(raw))))
    found |= dict(_long_lines(raw))
    return sorted(found.items())


def _spans(raw: bytes, positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    stop = 0
    for position in positions:
        if position >= stop:
            start, stop = _raw_line(raw, position)
            yield start, stop


def _longest(raw: bytes) -> int:
    return max((stop - start for start, stop in _long_lines(raw)), default=0)


def _long_lines(raw: bytes) -> Iterator[tuple[int, int]]:
    start, size = 0, len(raw)
    while size - start > LONGEST_LINE:
        newline = raw.rfind(b"\n", start, start + LONGEST_LINE + 1)
        if newline < 0:
            stop = raw.find(b"\n", start) + 1 or size
            yield start, stop
            start = stop
        else:
            start = newline + 1


def _raw_line(raw: bytes, position: int) -> tuple[int, int]:
    return raw.rfind(b"\n", 0, position) + 1, raw.find(b"\n", position) + 1 or len(raw)


def _lines_of(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of one raw line with their offsets in it. There is at least one."""
    raw = raw.removesuffix(b"\n")
    if len(raw) > LONGEST_RAW_LINE:
        for cut in range(0, len(raw), LONGEST_RAW_LINE):
            for offset, line in _lines_of(raw[cut : cut + LONGEST_RAW_LINE]):
                yield cut + offset, line
        return
    unclean = b"\0" in raw or has_escapes(raw)
    offset, waiting, found = 0, None, False
    for segment in raw.split(b"\r"):
        here, offset = offset, offset + len(segment) + 1
        line = without_escapes(segment.replace(b"\0", b"")) if unclean else segment
        if not line:
            continue
        found, bar = True, _is_bar(line) and unwrapped(line) is None
        if waiting is not None and not bar:
            yield waiting[0], _safe(waiting[1])
        waiting = (here, line) if bar else None
        if not bar:
            yield from _told(here, line)
    if waiting is not None:
        yield waiting[0], _safe(waiting[1])
    if not found:
        yield 0, b""


def _told(offset: int, line: bytes) -> Iterator[tuple[int, bytes]]:
    """The line, or those in its envelope, each with its offset. An envelope may lie in another one."""
    text = unwrapped(line)
    if text is None:
        yield offset, _safe(line)
        return
    for each in text.split(b"\n"):
        for place, own in _lines_of(each):
            yield offset + place, own
        offset += len(each) + 1


def _is_bar(line: bytes) -> bool:
    """Whether a segment is a progress bar and nothing else: `42%|####    | 42/100 [00:10<00:14, 4.1it/s]`.

    Text after the closing bracket, or text that cuts the bar short, makes it a line like any other. Such text
    may be the error that ended the run.
    """
    percent = line.find(b"%|")
    if percent < 1 or not line[percent - 1 : percent].isdigit():
        return False
    bracket = line.find(b"[", percent)
    if bracket < 0:
        return b"]" not in line[percent:] and line.count(b"|", percent + 2) <= 1
    closing = line.find(b"]", bracket)
    return closing >= 0 and not line[closing + 1 :].strip() and line.count(b"|", percent + 2, bracket) <= 1


def _safe(line: bytes) -> bytes:
    """The line without secrets, and cut. It is redacted first, so that no cut can leave half a secret."""
    if suspicious(line):
        line = redact(line)
    return line if len(line) <= LONGEST_LINE else redact(_capped(line))


def _capped(line: bytes) -> bytes:
    head, tail = _HEAD, len(line) - _TAIL
    while head > _HEAD - 3 and line[head] & 0xC0 == 0x80:  # not within a UTF-8 character
        head -= 1
    while tail < len(line) - _TAIL + 3 and line[tail] & 0xC0 == 0x80:
        tail += 1
    return b"%b ...[%d bytes cut]... %b" % (line[:head], tail - head, line[tail:])
