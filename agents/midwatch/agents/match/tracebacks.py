"""Where a line stands in a Python traceback: as quoted source, as the exception that ends it, as one that
Python itself ignored. Pure: a chunk's text and the offset of a line in it.

A traceback may be spoken by several ranks at once, so only lines of the same speaker are looked at: those
with the same prefix (`[rank3]: `, `(Trainer pid=7) `).
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

_LOOK_BACK = 120  # lines of a traceback read above its last one
_INTERLEAVED = 400  # lines of other speakers passed over meanwhile
_STRETCH = 8192  # bytes above that are searched at once
_INNERMOST = 6  # frames that tell whose code raised

# What a launcher, a scheduler or a notebook prints in front of a line: a rank, a host, a clock.
_FRONT = (
    rb"[^A-Za-z_\n]{0,24}|.{0,100}?(?:[\]>)|\t]:?|\d:|stderr:|stdout:) ?"
    rb"|\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?"
)
# What a logger prints there, in front of each line of a message.
_LOGGER = (
    rb".{0,80}?\b(?:ERROR|CRITICAL|FATAL|INFO|WARNING|DEBUG|stderr|stdout)\b(?: ?[-|:] ?| {1,4})"
    rb"(?:[\w.]{1,40}(?: - |: ?))?"
)
_SPEAKER = re.compile(
    rb"\A(?:" + _FRONT + rb"|" + _LOGGER + rb")"
    rb"(?=\s*(?:Traceback|File \"|[A-Za-z_][\w.]*"
    rb"(?:Error|Exception|Exit|Interrupt|Warning|Iteration|Timeout|Empty)\b))"
)
_PREFIX = re.compile(_FRONT)
_LOGGED = re.compile(_LOGGER)
_CLOCK = re.compile(rb"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?|\b[EFIW]\d{4}\b")
_NO_DIGITS = bytes.maketrans(string.digits.encode(), b"0" * len(string.digits))
_NAME = (string.ascii_letters + string.digits + "_.").encode()
_FRAME = re.compile(rb'\A\s*File "[^"]*", line \d+|\A\s*-+> ?\d+ ')
# A stack of HDF5's C library looks alike, but under each place stands what went wrong there.
_C_FRAME = re.compile(rb'\A\s*File "[^"]*\.c", line \d+, in H5\w+')
_DEEP = re.compile(rb"\A(.{0,120}?)(\s{4,})\S")
_SOURCE_LINES = 12  # of one statement that a frame may show
_SOURCE_BYTES = 8192  # in which the frame stands above it, whoever writes between
_PLACE = re.compile(rb'\A\s*File "([^"]*)", line \d+(?:,? in (\S+))?')
_CARETS = re.compile(rb"\A\s*[\^~]+\s*\Z")
_CODE = re.compile(
    rb"\A\s*(?:-+> ?)?(?:\d+)?(?:\s{2,}|\t)"
    rb"(?:raise\b|assert\b|return\b|except\b|if\b|elif\b|for\b|with\b|def\b|class\b|import\b"
    rb"|from \S+ import\b|self\.|super\(|print\(|warnings\.warn|logg(?:er|ing)\."
    rb"|try:|else:|# |--[a-z]|[rb]?f[\"'].*\{)"
)
_HEADER = b"Traceback (most recent call last):"
_HANDLING = b"During handling of the above exception, another "
_IGNORED = re.compile(
    rb"Exception ignored (?:in|on|while)|--- Logging error ---|WON'T CONVERT|in atexit callback"
    rb"|Exception in thread .*auto_conversion"
)
_NOTHING_MORE = re.compile(rb"\s*\Z")
_DIGITS = re.compile(rb"\d+")
_GETS_OVER_IT = re.compile(
    rb"(?i:\b(?:retrying|will (?:be )?retr(?:y|ied)|will be (?:ignored|skipped)|falling back)\b)"
)
_PROBE = re.compile(
    rb"\A(?:[a-z_]\w*\.)*(?:KeyError|StopIteration|Empty|ModuleNotFoundError|ImportError|AttributeError"
    rb"|LookupError)\b"
)

_MISSED = re.compile(rb"\A(?:[a-z_]\w*\.)*FileNotFoundError\b")
_CLEANS_UP = re.compile(
    r"^(?:__exit__|__aexit__|__del__|close|shutdown|stop|terminate|join|finali[sz]e|clean_?up)"
)

# What `warnings.warn` prints: the place, the category, which need not be called a warning, then its own call.
_WARNED = re.compile(rb"\A\S+\.py:\d+: \w+: ")
_WARNS = re.compile(rb"[ \t]+(?:[\w.]+\.)?warn\w*\(")
# What runs beside the job: an exception there is printed, and the job goes on without it.
_BESIDE = re.compile(
    rb"[/\\](?:wandb[/\\](?:sdk|proto|internal)|tensorboard|tensorboardX|comet_ml|neptune)[/\\]"
    rb"|[/\\]multiprocessing[/\\](?:resource_tracker|util)\.py$"
)
_THREAD = re.compile(rb"[/\\]threading\.py$")

Standing = Literal["said", "quoted", "ignored", "beside"]


@dataclass(frozen=True, slots=True)
class TracebackPlace:
    """Where a line stands.

    `quoted`: the line is source code that a traceback shows. `ignored`: it ends a traceback that Python
    printed and went on. `beside`: it ends one of what runs beside the job, such as a tracker's thread.
    `asserts`: the offset of the `assert` that the line, a bare AssertionError, is about.
    `handled`: the offset of the exception during whose handling this one was raised, and whether that one was
    only a `probe` (a cache's KeyError, an optional import). `frames`: file and function of the innermost
    frames of the traceback that the line ends, the innermost first; "" for a function that is not said.
    `passed_on`: it is a line of a traceback that a logger only passes on, each line as an information.
    """

    standing: Standing = "said"
    asserts: int | None = None
    handled: int | None = None
    probe: bool = False
    ends_traceback: bool = False
    frames: tuple[tuple[str, str], ...] = ()
    passed_on: bool = False


def begins_line(line: bytes, start: int) -> bool:
    """Whether the word that stands there begins the line, but for a launcher's prefix (a rank, a clock)."""
    before = line[:start].rstrip(_NAME)
    return not before or _PREFIX.fullmatch(before) is not None


def is_logged(line: bytes, start: int) -> bool:
    """Whether a logger's stamp and level alone stand in front of the word: a message, or a line of one."""
    return _LOGGED.fullmatch(line[:start].rstrip(_NAME)) is not None


def place_of(text: bytes, start: int, end: int) -> TracebackPlace:
    """Where the line from `start` to `end` stands; lines above `text` are unknown."""
    line = text[start:end]
    if _CODE.match(line) or _is_source(text, start, line):
        return TracebackPlace("quoted")
    if _WARNED.match(line) and _WARNS.match(text, end + 1):
        return TracebackPlace("ignored")
    speaker = _speaker(line)
    above = _above(text, start, speaker)
    first = next(above, None)
    if first is None:
        return TracebackPlace()
    said = line[len(speaker) :]
    if said[:1].isspace():
        shown = _FRAME.match(first[1]) is not None and _C_FRAME.match(first[1]) is None
        return TracebackPlace("quoted") if shown else TracebackPlace()
    place = _ending(said, first, above, last=_NOTHING_MORE.match(text, end) is not None)
    return replace(place, passed_on=True) if place.ends_traceback and b"INFO" in speaker else place


def _is_source(text: bytes, start: int, line: bytes) -> bool:
    """Whether a frame of the same writer stands right above the line, whatever prefix it writes in front."""
    deep = _DEEP.match(line)
    if deep is None or text.rfind(b'File "', max(start - _SOURCE_BYTES, 0), start) < 0:
        return False
    for _, above in islice(_above(text, start, deep[1].rstrip()), _SOURCE_LINES):
        if _FRAME.match(above):
            return _C_FRAME.match(above) is None
        if not above.startswith(b"    "):
            return False
    return False


def _ending(
    said: bytes, first: tuple[int, bytes], above: Iterator[tuple[int, bytes]], *, last: bool
) -> TracebackPlace:
    """The line is at its speaker's margin: read the traceback above it, if it ends one. The `last` one of a
    log is what came of it, where a loop had said again and again that it would try once more."""
    asserts = None
    at, before = first
    while _CARETS.match(before):
        at, before = next(above, (at, b""))
    if not (before[:1].isspace() or _FRAME.match(before)):
        return TracebackPlace()
    if said.strip() in (b"AssertionError", b"AssertionError:") and before.strip().startswith(b"assert"):
        asserts = at
    frames, began, beside = _frames(before, above)
    if not began:
        return TracebackPlace(asserts=asserts, ends_traceback=True, frames=frames)
    _, lead = next(above, (0, b""))
    if not lead.strip():
        _, lead = next(above, (0, b""))
    again = _GETS_OVER_IT.search(lead) is not None
    if again and last:
        _, before = next(above, (0, b""))
        again = _DIGITS.sub(b"0", before) != _DIGITS.sub(b"0", lead)
    if _IGNORED.search(lead) or again:
        return TracebackPlace("ignored", ends_traceback=True, frames=frames)
    handled, probe = None, False
    if lead.startswith(_HANDLING):
        handled, earlier = next(((at, line) for at, line in above if line.strip()), (None, b""))
        if beside:
            return TracebackPlace("beside", handled=handled, ends_traceback=True, frames=frames)
        if _MISSED.match(earlier):
            probe = _went_elsewhere(said, frames, above)
        else:
            probe = _PROBE.match(earlier) is not None and not _tried_again(said, frames, earlier, above)
    standing: Standing = "beside" if beside else "said"
    return TracebackPlace(standing, asserts, handled, probe, ends_traceback=True, frames=frames)


def _tried_again(
    said: bytes, frames: tuple[tuple[str, str], ...], earlier: bytes, above: Iterator[tuple[int, bytes]]
) -> bool:
    """Whether the same function looked for the same under another name, in vain as well."""
    if said.partition(b":")[0] != earlier.partition(b":")[0]:
        return False
    _, last = next(above, (0, b""))
    places, _, _ = _frames(last, above)
    return bool(frames) and places[:1] == frames[:1]


def _went_elsewhere(
    said: bytes, frames: tuple[tuple[str, str], ...], above: Iterator[tuple[int, bytes]]
) -> bool:
    """Whether what was not there (in a cache) was then fetched in another way, and that failed: the handler
    called something, and did not merely put the miss into words of its own or clean up."""
    if not frames or _MISSED.match(said) or any(_CLEANS_UP.match(function) for _, function in frames):
        return False
    handler = None
    for _, line in above:
        place = _PLACE.match(line)
        if place is not None:
            handler = place
        elif line.startswith(_HEADER):
            break
    if handler is None:
        return False
    return frames[0] != tuple((part or b"").decode("utf-8", "replace") for part in handler.groups())


def _frames(
    last: bytes, above: Iterator[tuple[int, bytes]]
) -> tuple[tuple[tuple[str, str], ...], bool, bool]:
    """The innermost frames; whether the traceback's first line, or the text's, was reached; whether all of it
    ran beside the job."""
    frames: list[tuple[str, str]] = []
    beside, outermost = False, b""
    line = last
    while True:
        found = _PLACE.match(line)
        if found is not None:
            outermost = found[1]
            beside = beside or _BESIDE.search(outermost) is not None
            if len(frames) < _INNERMOST:
                function = (found[2] or b"").decode("utf-8", "replace")
                frames.append((outermost.decode("utf-8", "replace"), function))
        elif line.startswith(_HEADER):
            began_beside = _BESIDE.search(outermost) or _THREAD.search(outermost)
            return tuple(frames), True, beside and began_beside is not None
        elif line and not line[:1].isspace() and not _FRAME.match(line):
            return tuple(frames), False, False
        _, line = next(above, (0, _HEADER))


def _speaker(line: bytes) -> bytes:
    found = _SPEAKER.match(line)
    return found[0] if found else b""


def _above(text: bytes, start: int, speaker: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines above of the same speaker, nearest first: offset, and the line without the speaker."""
    size, is_alike = len(speaker), _likeness(speaker)
    if is_alike is None:
        yield from islice(_with_prefix(text, start, speaker), _LOOK_BACK)
        return
    passed = given = 0
    end = start - 1
    while end >= 0 and passed < _INTERLEAVED and given < _LOOK_BACK:
        begin = text.rfind(b"\n", 0, end) + 1
        line = text[begin:end]
        if is_alike(line[:size]):
            given += 1
            yield begin, line[size:]
        else:
            passed += 1
        end = begin - 1


def _with_prefix(text: bytes, start: int, prefix: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines above that begin with the prefix, as many as stand within `_INTERLEAVED` others. Where
    hundreds of ranks speak at once nearly all lines are of others, so they are counted and not looked at."""
    passed, end, sought = 0, start - 1, b"\n" + prefix
    while end > 0:
        floor = text.rfind(b"\n", 0, max(end - _STRETCH, 0))
        before = text.rfind(sought, max(floor, 0), end)
        if before < 0 and floor < 0 and text.startswith(prefix, 0, end):
            line_end = text.find(b"\n", 0, end)
            begin = 0
        elif before < 0:
            passed += text.count(b"\n", max(floor, 0), end)
            if passed >= _INTERLEAVED:
                return
            end = floor
            continue
        else:
            begin = before + 1
            line_end = text.find(b"\n", begin, end)
        line_end = end if line_end < 0 else line_end
        passed += text.count(b"\n", line_end, end)
        if passed >= _INTERLEAVED:
            return
        yield begin, text[begin + len(prefix) : line_end]
        end = begin - 1


def _likeness(speaker: bytes) -> Callable[[bytes], bool] | None:
    """Whether another prefix is of the same speaker: those that count lines or time differ in their digits
    alone; those of ranks, which stand in brackets, in their clock. None: no other prefix is."""
    if not any(byte in speaker for byte in b"[("):
        shape = speaker.translate(_NO_DIGITS)
        return lambda prefix: prefix.translate(_NO_DIGITS) == shape
    if not _CLOCK.search(speaker):
        return None
    timeless = _without_clock(speaker)
    return lambda prefix: _without_clock(prefix) == timeless


def _without_clock(prefix: bytes) -> bytes:
    return _CLOCK.sub(lambda clock: clock[0].translate(_NO_DIGITS), prefix)
