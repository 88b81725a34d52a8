"""The place of a line in a Python traceback: quoted source, its last line, or an ignored exception.

Pure: the input is a chunk's text and the offset of a line in it. Several ranks may print tracebacks at once.
So the module reads only lines of one speaker, that is, with one prefix (`[rank3]: `, `(Trainer pid=7) `).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from midwatch.agents.match.beside_the_job import ended_by_it, ends_beside, is_beside, is_only_told
from midwatch.agents.match.lines_above import lines_above
from midwatch.agents.match.listed_exceptions import is_listed
from midwatch.agents.match.passed_over import HEADER, IGNORED, OF_A_TRIAL, SOURCE_BYTES, is_passed_over
from midwatch.agents.match.said_above import gets_over_it
from midwatch.streams.lines.forms import LONGEST_FORM, form_of
from midwatch.streams.lines.launcher_prefix import front
from midwatch.streams.lines.log_levels import is_debugged_failure, is_quiet

_INNERMOST = 6  # frames that show whose code raised

# A launcher, a scheduler or a notebook prints this in front of a line: a rank, a host, a clock.
_FRONT = (
    rb"[^A-Za-z_\n]{0,24}|.{0,100}?(?:[\]>)|\t]:?|\d:|stderr:|stdout:) ?"
    rb"|\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?"
)
# A logger prints this in front of each line of a message.
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
_NO_NAME = frozenset(bytes([sign]) for sign in b"[](){}<>|:;,.!?#*+-=/\\'\"`~^@$%&0123456789")
"""What begins no exception's line and no indented line, so nothing above tells more of the line."""
_NAME = (string.ascii_letters + string.digits + "_.").encode()
_FRAME = re.compile(rb'\A\s*File "[^"]*", line \d+|\A\s*-+> ?\d+ ')
# A stack of HDF5's C library looks alike, but the line under a place is an error and no source code.
_C_FRAME = re.compile(rb'\A\s*File "[^"]*\.c", line \d+, in H5\w+')
_DEEP = re.compile(rb"\A(.{0,120}?)(\s{4,})\S")
_SOURCE_LINES = 12  # lines of one statement that a frame may show
_DEEPEST = 400  # bytes of a line in which its indent is looked for
_PLACE = re.compile(rb'\A\s*File "([^"]*)", line \d+(?:,? in (\S+))?')
_CARETS = re.compile(rb"\A\s*[\^~]+\s*\Z")
_CODE = re.compile(  # its last form is Rich's
    rb"\A\s*(?:-+> ?)?(?:\d+)?(?:\s{2,}|\t)"
    rb"(?:raise\b|assert\b|return\b|except\b|if\b|elif\b|for\b|with\b|def\b|class\b|import\b"
    rb"|from \S+ import\b|self\.|super\(|print\(|warnings\.warn|logg(?:er|ing)\."
    rb"|try:|else:|# |--[a-z]|[rb]?f[\"'].*\{)"
    rb"|\A[+-](?: {4,}|\t+)\S"  # a line of a diff
    rb"|\A(?:\xe2\x94\x82 ?)?\s*(?:\xe2\x9d\xb1 +\d+ \xe2\x94\x82|\d+ \xe2\x94\x82(?: +\xe2\x94\x82)* {3,}\S)"
)
# An interactive shell names the exception above the traceback, and again with its message below.
_NOTEBOOK_HEADER = re.compile(rb"\A\s*[\w.]+ {2,}Traceback \(most recent call last\)\s*\Z")
# Another writer's line may follow the carets of a traceback without a line break.
_GLUED = re.compile(rb"\A\s*[\^~]{3,}\[")
# Ray puts the name of the task in the place of the header.
_RAY_HEADER = re.compile(rb"(?:\x1b\[\d+m)?ray::[\w.:<>]+\(\)")
_HANDLING = b"During handling of the above exception, another "
_NOTHING_MORE = re.compile(rb"\s*\Z")
_CHAINED_BELOW = re.compile(rb"\n\s*\n.{0,80}" + _HANDLING)
_OF_LOGGING, _OF_THE_HOOK = b"--- Logging error ---", b"Error in sys.excepthook:"
_DIGITS = re.compile(rb"\d+")
# A client logs this in front of an exception after which it tries again.
_TRIED_AGAIN = re.compile(rb"\bRetry attempt failed:\s*\Z")
_PROBE = re.compile(
    rb"\A(?:[a-z_]\w*\.)*(?:KeyError|StopIteration|Empty|ModuleNotFoundError|ImportError|AttributeError"
    rb"|LookupError|IndexError|DeferredInitializationError)\b"
)

_INTERRUPTED = b"KeyboardInterrupt"
_SLEEPS = re.compile(rb"\bsleep\(")  # a handler that waits, and tries again when it is awake

_MISSED = re.compile(rb"\A(?:[a-z_]\w*\.)*FileNotFoundError\b")
_Frames = tuple[tuple[str, str], ...]
_CLEANS_UP = re.compile(
    r"^(?:__exit__|__aexit__|__del__|close|shutdown|stop|terminate|join|finali[sz]e|clean_?up)"
)

# `warnings.warn` prints the place, the category (whose name may lack "Warning"), then its own call.
# Lightning tells of an interrupt in this form, and that ends the run.
_WARNED = re.compile(rb"\A\S+\.py:\d+: \w+: (?!Detected KeyboardInterrupt)")
_WARNS = re.compile(rb"[ \t]+(?:[\w.]+\.)?warn\w*\(")
# A search over parameters counts a failed fit and tries the next one. Its warning ends behind the traceback.
# So does what Python 2 says of a record that its logging could not write.
_PASSED_OVER_BELOW = re.compile(
    rb"\s*\n[ \t]*(?:(?:warnings\.warn\(\w+, )?FitFailedWarning\)|Logged from file \S+, line \d+)"
)
# The words of an exception may be the traceback of another (TensorFlow 1's import), which says more.
_HOLDS_ANOTHER = re.compile(
    rb"[\w.]+(?:Error|Exception): Traceback \(most recent call last\):\s*\n(?:[ \t]+\S[^\n]*\n)+"
    rb"[\w.]+(?:Error|Exception): "
)
_THREAD = re.compile(rb"[/\\]threading\.py$")
_LOGGING = re.compile(rb"[/\\]logging[/\\]__init__\.py$")
_OF_A_THREAD = re.compile(rb"[/\\](?:threading|concurrent[/\\]futures[/\\]thread)\.py$")
_OF_THE_SCRIPT = (b"<module>", b"_run_module_as_main")
"""Functions of a traceback's first frame that nothing of the program calls, so nothing can catch there."""

PlaceKind = Literal["reported", "quoted", "ignored", "beside"]


@dataclass(frozen=True, slots=True)
class TracebackPlace:
    """The place of a line in a traceback, or outside of one.

    - kind "reported": the line reports a failure, as far as the traceback shows.
    - kind "quoted": the line is source code in a traceback.
    - kind "ignored": the line ends a traceback after which the program went on.
    - kind "beside": the line ends a traceback of code beside the job, such as a tracker's thread.
    - asserts: offset of the failed `assert`, if the line is a bare AssertionError.
    - handled: offset of the exception whose handling raised this one.
    - probe: whether the handled exception was only a probe (a cache's KeyError, an optional import).
    - frames: file and function of the innermost frames, the innermost first. An unknown function is "".
    - passed_on: whether a logger only passes the traceback on, each line at level INFO.
    - thread: whether it ended a thread beside the main one. The process lives on without that thread.
    - left: whether it left the script's own module, so nothing caught it and its process ended.
    """

    kind: PlaceKind = "reported"
    asserts: int | None = None
    handled: int | None = None
    probe: bool = False
    ends_traceback: bool = False
    frames: _Frames = ()
    passed_on: bool = False
    thread: bool = False
    left: bool = False


_REPORTED = TracebackPlace()
_QUOTED = TracebackPlace("quoted")


def begins_line(line: bytes, start: int) -> bool:
    """Whether the word at `start` begins the line. A launcher's prefix (a rank, a clock) may precede it."""
    before = line[front(line[:start]) : start].rstrip(_NAME)
    return not before or _PREFIX.fullmatch(before) is not None


def is_logged(line: bytes, start: int) -> bool:
    """Whether only a logger's stamp and level precede the word at `start`, as in a message's first words."""
    return _LOGGED.fullmatch(line[front(line[:start]) : start].rstrip(_NAME)) is not None


def place_of(text: bytes, start: int, end: int, shape: bytes | None = None) -> TracebackPlace:
    """The place of the line from `start` to `end`. Lines above `text` are unknown.

    `shape` is the line's form, for a caller that knows it.
    """
    line = text[start:end]
    form = _form(shape or form_of(line)) if end - start <= LONGEST_FORM else _form.__wrapped__(line)
    deep = form.deep >= 0 and _is_source(text, start, line[: form.deep])
    if form.quoted or deep or _HOLDS_ANOTHER.match(text, start) or is_listed(text, start, end):
        return _QUOTED
    if (form.warned and _WARNS.match(text, end + 1)) or _PASSED_OVER_BELOW.match(text, end):
        return TracebackPlace("ignored")
    speaker, words = line[: form.speaker], line[form.speaker :]
    above = lines_above(text, start, speaker)
    first = None if words[:1] in _NO_NAME else next(above, None)
    if first is None:
        return TracebackPlace("ignored") if is_passed_over(text, start, end, speaker) else _REPORTED
    if words[:1].isspace():
        shown = _FRAME.match(first[1]) is not None and not form.glued and _C_FRAME.match(first[1]) is None
        return _QUOTED if shown else _REPORTED
    last, chained = (what.match(text, end) is not None for what in (_NOTHING_MORE, _CHAINED_BELOW))
    place = _ending(words, first, above, last=last, chained=chained)
    if place.kind == "reported" and is_passed_over(text, start, end, speaker):
        return TracebackPlace("ignored", ends_traceback=True, frames=place.frames)
    if place.kind == "reported" and place.ends_traceback and not speaker and ends_beside(text, end):
        place = replace(place, kind="beside")
    if place.kind == "beside" and ended_by_it(text, end):
        place = replace(place, kind="reported")
    return replace(place, passed_on=True) if place.ends_traceback and b"INFO" in speaker else place


class _LineForm(NamedTuple):
    """What holds for all lines of one form.

    `quoted`: the line itself looks like source code, or like a shell's header. `deep`: the length of what
    precedes its first deep indent, or -1. `warned`: it begins a warning. `glued`: another writer's line
    follows carets. `speaker`: the length of its prefix.
    """

    quoted: bool
    deep: int
    warned: bool
    glued: bool
    speaker: int


@lru_cache(maxsize=2048)
def _form(line: bytes) -> _LineForm:
    words = line[front(line) :]
    glued = _GLUED.match(words) is not None
    deep = None if glued else _DEEP.match(line)
    return _LineForm(
        quoted=_NOTEBOOK_HEADER.match(words) is not None or _CODE.match(words) is not None,
        deep=deep.end(1) if deep else -1,
        warned=_WARNED.match(words) is not None,
        glued=glued,
        speaker=len(_speaker(line)),
    )


def _is_source(text: bytes, start: int, front: bytes) -> bool:
    """Whether a frame of the same writer stands right above the line, with `front` in front of its indent.

    Source code stands deeper than its frame. So what a traceback that is itself indented ends with is none.
    """
    if text.rfind(b'File "', max(start - SOURCE_BYTES, 0), start) < 0:
        return False
    speaker = front.rstrip()
    for _, above in islice(lines_above(text, start, speaker), _SOURCE_LINES):
        if _FRAME.match(above):
            deeper = _indent(text[start + len(speaker) : start + len(speaker) + _DEEPEST]) > _indent(above)
            return deeper and _C_FRAME.match(above) is None
        if not above.startswith(b"    "):
            return False
    return False


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))


def _ending(
    words: bytes, first: tuple[int, bytes], above: Iterator[tuple[int, bytes]], *, last: bool, chained: bool
) -> TracebackPlace:
    """The place of a line at its speaker's margin, from the traceback above, if the line ends one.

    `last`: this line ends the text. If a loop announced retry after retry before it, this failure counts,
    because no retry followed. `chained`: another one follows. Below logging's word the first ones are the
    program's, and the last is logging's.
    """
    asserts = None
    at, before = first
    while _CARETS.match(before):
        at, before = next(above, (at, b""))
    if not (before[:1].isspace() or _FRAME.match(before)):
        tries_again = _TRIED_AGAIN.search(before) is not None and is_quiet(before)
        return TracebackPlace("ignored") if tries_again else _REPORTED
    if words.strip() in (b"AssertionError", b"AssertionError:") and before.strip().startswith(b"assert"):
        asserts = at
    source = before
    frames, began, beside, outermost = _frames(before, above, words.strip())
    thread = _THREAD.search(outermost.file) is not None
    if not began:
        return TracebackPlace(asserts=asserts, ends_traceback=True, frames=frames, thread=thread)
    left = outermost.function in _OF_THE_SCRIPT
    _, lead = next(above, (0, b""))
    if not lead.strip():
        _, lead = next(above, (0, b""))
    lead = _above_the_record(lead, above)
    retried = gets_over_it(lead, words)
    if retried and last:
        _, before = next(above, (0, b""))
        retried = _DIGITS.sub(b"0", before) != _DIGITS.sub(b"0", lead)
    logged = OF_A_TRIAL.search(lead) is not None or is_debugged_failure(lead)
    of_program = chained and lead.endswith(_OF_LOGGING) and _LOGGING.search(outermost.file) is None
    counts = of_program or (last and lead.endswith(_OF_THE_HOOK))
    ignored = IGNORED.search(lead) is not None and not counts
    if ignored or retried or (logged and not last):
        return TracebackPlace("ignored", ends_traceback=True, frames=frames)
    handled, probe = None, False
    if lead.startswith(_HANDLING):
        handled, earlier = next(((at, line) for at, line in above if line.strip()), (None, b""))
        if beside:
            return TracebackPlace("beside", handled=handled, ends_traceback=True, frames=frames)
        waits = words.startswith(_INTERRUPTED) and _SLEEPS.search(source) is not None
        if _MISSED.match(earlier):
            probe = _went_elsewhere(words, frames, above)
        else:
            fails_alike = _says_nothing(words) or _tried_again(words, frames, earlier, above)
            probe = _PROBE.match(earlier) is not None and not fails_alike
        probe = probe or waits
    return TracebackPlace(
        "beside" if beside else "reported",
        asserts,
        handled,
        probe,
        ends_traceback=True,
        frames=frames,
        thread=thread,
        left=left and not beside,
    )


def _above_the_record(lead: bytes, above: Iterator[tuple[int, bytes]]) -> bytes:
    """The line itself, or that above PowerShell's record if it is one's end.

    PowerShell writes its record behind the first line that a program sends to its standard error. The record
    begins with a line in the machine's own language; all others begin with a plus.
    """
    if not lead.lstrip().startswith(b"+ FullyQualifiedErrorId"):
        return lead
    while lead.lstrip().startswith(b"+"):
        _, lead = next(above, (0, b""))
    _, lead = next(above, (0, b""))
    return lead


def _says_nothing(words: bytes) -> bool:
    """Whether an exception has no words of its own (numpy's ImportError): the one before tells more."""
    return words.rstrip().endswith(b"Error:")


def _tried_again(words: bytes, frames: _Frames, earlier: bytes, above: Iterator[tuple[int, bytes]]) -> bool:
    """Whether the same function tried a second time, under another name, and failed with the same error."""
    if words.partition(b":")[0] != earlier.partition(b":")[0]:
        return False
    _, last = next(above, (0, b""))
    places, *_ = _frames(last, above)
    return bool(frames) and places[:1] == frames[:1]


def _went_elsewhere(words: bytes, frames: _Frames, above: Iterator[tuple[int, bytes]]) -> bool:
    """Whether the handler of a missing file (of a cache, say) failed in another way to get it.

    The handler called something else: it neither reworded the miss nor cleaned up. Or it is pathlib's, which
    makes the folder above first.
    """
    if not frames or any(_CLEANS_UP.match(function) for _, function in frames):
        return False
    handler = None
    for _, line in above:
        place = _PLACE.match(line)
        if place is not None:
            handler = place
        elif line.startswith(HEADER):
            break
    if handler is None:
        return False
    missed = tuple((part or b"").decode("utf-8", "replace") for part in handler.groups())
    return frames[0][1] == "mkdir" if frames[0] == missed else not _MISSED.match(words)


class _Outermost(NamedTuple):
    """The first frame of a traceback."""

    file: bytes = b""
    function: bytes = b""


def _frames(
    last: bytes, above: Iterator[tuple[int, bytes]], words: bytes = b""
) -> tuple[_Frames, bool, bool, _Outermost]:
    """The innermost frames; whether the traceback's beginning was found, and beside the job; its first frame.

    The beginning of the text counts as the beginning of the traceback. Threads of one process write without
    a prefix. So a last line equal to `words` is another thread's, whose frames stand among these.
    """
    frames: list[tuple[str, str]] = []
    beside, first = False, None
    line = last
    while True:
        found = _PLACE.match(line)
        if found is not None:
            first = found
            beside = beside or is_beside(found[1])
            if len(frames) < _INNERMOST:
                function = (found[2] or b"").decode("utf-8", "replace")
                frames.append((found[1].decode("utf-8", "replace"), function))
        elif line.startswith(HEADER) or _RAY_HEADER.match(line):
            outermost = _outermost(first)
            of_a_thread = _OF_A_THREAD.search(outermost.file) is not None
            beside = beside and (is_beside(outermost.file) or of_a_thread)
            return tuple(frames), True, beside or is_only_told(*outermost, words), outermost
        elif line and not line[:1].isspace() and not _FRAME.match(line) and line.strip() != words:
            return tuple(frames), False, False, _outermost(first)
        _, line = next(above, (0, HEADER))


def _outermost(found: re.Match[bytes] | None) -> _Outermost:
    return _Outermost() if found is None else _Outermost(found[1], found[2] or b"")


def _speaker(line: bytes) -> bytes:
    for size in (front(line), 0):
        found = _SPEAKER.match(line[size:])
        if found:
            return line[: size + found.end()]
    return b""
