"""The lines of one speaker above a line, nearest first. Pure.

Hundreds of ranks may print at once. So the lines of one rank stand apart, and most lines above are of others.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import accumulate, chain, count, islice
from operator import add

from midwatch.streams.lines.launcher_prefix import front
from midwatch.streams.lines.left_out import marks_lines_left_out

_LOOK_BACK = 120  # lines of a traceback read above its last one
_INTERLEAVED = 400  # lines of other speakers between them
_DOUBLED = 3  # a header, a frame and its source: the shortest traceback
_FRAME = re.compile(rb'\s*File "')
_CLOCK = re.compile(  # the last one is Kaggle's: seconds, and the number of the line
    rb"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?|\b[EFIW]\d{4}\b|\A\d+\.\ds[ \t]+\d+[ \t]"
)
_NO_DIGITS = bytes.maketrans(string.digits.encode(), b"0" * len(string.digits))


def lines_above(text: bytes, start: int, speaker: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines above the line at `start` with the speaker's prefix: the offset, and what follows the prefix.

    A launcher's prefix is the same for each line of a speaker, but for its clock. Other prefixes without a
    bracket count as one speaker's if they differ in their digits only. A wrapper may print each line with a
    second line break, so a blank line stands below each line of a traceback. Those blank lines are left out.
    A mark for lines left out is no line of the speaker.
    """
    is_alike = _likeness(speaker)
    if is_alike is None:
        above = _with_prefix(text, start, speaker)
    else:
        above = _with_alike(text, start, len(speaker), is_alike)
    whole = ((at, line) for at, line in above if not marks_lines_left_out(line))
    return islice(_without_doubled_breaks(whole), _LOOK_BACK)


def _without_doubled_breaks(above: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The same lines. The blank ones are left out if every second line is blank and a frame is near."""
    nearest = next(above, None)
    if nearest is None:
        return iter(())
    if nearest[1].strip():
        return chain((nearest,), above)
    read = [nearest, *islice(above, 2 * _DOUBLED - 1)]
    every = chain(read, above)
    blank = [not line.strip() for _, line in read]
    doubled = blank == [True, False] * _DOUBLED and any(_FRAME.match(line) for _, line in read)
    return ((at, line) for at, line in every if line.strip()) if doubled else every


def _with_alike(
    text: bytes, start: int, size: int, is_alike: Callable[[bytes], bool]
) -> Iterator[tuple[int, bytes]]:
    passed, end = 0, start - 1
    while end >= 0 and passed < _INTERLEAVED:
        begin = text.rfind(b"\n", 0, end) + 1
        line = text[begin:end]
        if is_alike(line[:size]):
            yield begin, line[size:]
        else:
            passed += 1
        end = begin - 1


def _with_prefix(text: bytes, start: int, prefix: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines above with exactly this prefix. It searches for them, because most lines are of others."""
    passed, end = 0, start - 1
    while end > 0:
        begin = text.rfind(b"\n", 0, end) + 1
        if not text.startswith(prefix, begin, end):
            breaks = _breaks(text)
            above = bisect_left(breaks, end)
            lowest = above - (_INTERLEAVED - passed)  # the line break before the first line that may count
            before = text.rfind(b"\n" + prefix, breaks[lowest] if lowest >= 0 else 0, end)
            if before < 0 and (lowest >= 0 or not text.startswith(prefix)):
                return
            begin = before + 1
            end = text.index(b"\n", begin)
            passed += above - bisect_left(breaks, end)
        yield begin, text[begin + len(prefix) : end]
        end = begin - 1


@lru_cache(maxsize=2)
def _breaks(text: bytes) -> list[int]:
    """The offsets of all line breaks of a chunk. Between them a rank's lines are counted again and again."""
    return list(map(add, accumulate(map(len, text.split(b"\n")[:-1])), count()))


@lru_cache(maxsize=512)
def _likeness(speaker: bytes) -> Callable[[bytes], bool] | None:
    """A test whether another prefix is of the same speaker; None if only the same prefix is."""
    if front(speaker) == len(speaker) and not _CLOCK.search(speaker):
        return None
    if b"[" not in speaker and b"(" not in speaker:
        shape = speaker.translate(_NO_DIGITS)
        return lambda prefix: prefix.translate(_NO_DIGITS) == shape
    if not _CLOCK.search(speaker):
        return None
    timeless = _without_clock(speaker)
    return lambda prefix: _without_clock(prefix) == timeless


def _without_clock(prefix: bytes) -> bytes:
    return _CLOCK.sub(lambda clock: clock[0].translate(_NO_DIGITS), prefix)
