"""Where a line stands in a Python traceback: as quoted source, as the exception that ends it, as one that
Python itself ignored. Pure: a chunk's text and the offset of a line in it.

A traceback may be spoken by several ranks at once, so only lines of the same speaker are looked at: those
with the same prefix (`[rank3]: `, `(Trainer pid=7) `).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_LOOK_BACK = 120  # lines of a traceback read above its last one
_INTERLEAVED = 400  # lines of other speakers passed over meanwhile

# An exception behind whatever a launcher, a scheduler or a notebook prints in front of it.
_SPEAKER = re.compile(
    rb"\A(?:[^A-Za-z\n]{0,24}|.{0,100}?(?:[\]>)|\t]:?|\d:|stderr:|stdout:) ?)"
    rb"(?=\s*(?:Traceback|File \"|[A-Za-z_][\w.]*"
    rb"(?:Error|Exception|Exit|Interrupt|Warning|Iteration|Timeout|Empty)\b))"
)
_PREFIX = re.compile(rb"[^A-Za-z\n]{0,24}|.{0,100}(?:[\]>)|\t]:?|\d:|stderr:|stdout:) ?")
_NAME = (string.ascii_letters + string.digits + "_.").encode()
_FRAME = re.compile(rb'\A\s*File "[^"]*", line \d+|\A\s*-+> ?\d+ ')
_CARETS = re.compile(rb"\A\s*[\^~]+\s*\Z")
_CODE = re.compile(
    rb"\A\s*(?:-+> ?)?(?:\d+)?\s{2,}"
    rb"(?:raise\b|assert\b|return\b|except\b|if\b|elif\b|for\b|with\b|def\b|class\b|import\b"
    rb"|from \S+ import\b|self\.|super\(|print\(|warnings\.warn|logg(?:er|ing)\.)"
)
_HEADER = b"Traceback (most recent call last):"
_HANDLING = b"During handling of the above exception, another "
_IGNORED = re.compile(
    rb"Exception ignored (?:in|on|while)|--- Logging error ---|WON'T CONVERT|in atexit callback"
    rb"|Exception in thread .*auto_conversion"
)
_PROBE = re.compile(
    rb"\A(?:[a-z_]\w*\.)*(?:KeyError|StopIteration|Empty|ModuleNotFoundError|ImportError|AttributeError"
    rb"|LookupError)\b"
)

Standing = Literal["said", "quoted", "ignored"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line stands.

    `quoted`: the line is source code that a traceback shows. `ignored`: it ends a traceback that Python
    printed and went on. `asserts`: the offset of the `assert` that the line, a bare AssertionError, is about.
    `handled`: the offset of the exception during whose handling this one was raised, and whether that one was
    only a `probe` (a cache's KeyError, an optional import).
    """

    standing: Standing = "said"
    asserts: int | None = None
    handled: int | None = None
    probe: bool = False
    ends_traceback: bool = False


def begins_line(line: bytes, start: int) -> bool:
    """Whether the word that stands there begins the line, but for a launcher's prefix (a rank, a clock)."""
    before = line[:start].rstrip(_NAME)
    return not before or _PREFIX.fullmatch(before) is not None


def place_of(text: bytes, start: int, end: int) -> Place:
    """Where the line from `start` to `end` stands; lines above `text` are unknown."""
    line = text[start:end]
    if _CODE.match(line):
        return Place("quoted")
    speaker = _speaker(line)
    above = _above(text, start, speaker)
    first = next(above, None)
    if first is None:
        return Place()
    said = line[len(speaker) :]
    if said[:1].isspace():
        return Place("quoted") if _FRAME.match(first[1]) else Place()
    return _ending(said, first, above)


def _ending(said: bytes, first: tuple[int, bytes], above: Iterator[tuple[int, bytes]]) -> Place:
    """The line is at its speaker's margin: read the traceback above it, if it ends one."""
    asserts = None
    at, before = first
    while _CARETS.match(before):
        at, before = next(above, (at, b""))
    if not (before[:1].isspace() or _FRAME.match(before)):
        return Place()
    if said.strip() in (b"AssertionError", b"AssertionError:") and before.strip().startswith(b"assert"):
        asserts = at
    for _, before in above:
        if before.startswith(_HEADER):
            break
        if before and not before[:1].isspace() and not _FRAME.match(before):
            return Place(asserts=asserts, ends_traceback=True)
    _, lead = next(above, (0, b""))
    if not lead.strip():
        _, lead = next(above, (0, b""))
    if _IGNORED.search(lead):
        return Place("ignored", ends_traceback=True)
    handled, probe = None, False
    if lead.startswith(_HANDLING):
        handled, earlier = next(((at, line) for at, line in above if line.strip()), (None, b""))
        probe = _PROBE.match(earlier) is not None
    return Place("said", asserts, handled, probe, ends_traceback=True)


def _speaker(line: bytes) -> bytes:
    found = _SPEAKER.match(line)
    return found[0] if found else b""


def _above(text: bytes, start: int, speaker: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines above of the same speaker, nearest first: offset, and the line without the speaker."""
    shape = _shape(speaker)
    numbered = bool(speaker) and not any(byte in speaker for byte in b"[(")
    passed = given = 0
    end = start - 1
    while end >= 0 and passed < _INTERLEAVED and given < _LOOK_BACK:
        begin = text.rfind(b"\n", 0, end) + 1
        line = text[begin:end]
        if line.startswith(speaker) or (numbered and _shape(line[: len(speaker)]) == shape):
            given += 1
            yield begin, line[len(speaker) :]
        else:
            passed += 1
        end = begin - 1


def _shape(speaker: bytes) -> bytes:
    """Prefixes that count lines or time differ in their digits alone."""
    return re.sub(rb"\d", b"0", speaker)
