"""Cut tracebacks: one that fills the last lines of a log, and whose exception is missing. Pure.

Python's, IPython's and Rich's, behind whatever a launcher or a collector prints in front of each line.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence

from midwatch.streams.lines.launcher_prefix import front
from midwatch.streams.lines.left_out import marks_lines_left_out
from midwatch.streams.lines.log_levels import is_quiet

_LONGEST = 120
"""The most lines of a traceback."""
_HEADLINE = rb"Traceback \(most recent call last\)"
_HEADER = re.compile(_HEADLINE + rb":?\s*\Z")
_FRAME = re.compile(
    rb"\A\s*File \"[^\"]*\", line \d+|\A\s*-+> ?\d+ "
    rb"|\A(?:Cell In|Input In) ?\[\d+\]|\A<ipython-input-[\w-]+> in "  # IPython
    rb"|\A(?:File )?[~/]\S+ in (?:\w+\(|<)"
)
# Spyder's frames, which blank lines part.
_SPACED = re.compile(rb"\A\s*File (?:[~/]|[A-Za-z]:\\)\S*:\d+(?:,? in \w|\s*\Z)")
_SOURCE = re.compile(rb"\A\s{2,}\S|\A\s*[\^~]+\s*\Z")
# Rich draws a box, and prints the exception below it.
_BOX_HEADER = re.compile(rb"\A\s*(?:\xe2\x95\xad|\+-).*" + _HEADLINE)
_BOX = re.compile(rb"\A\s*(?:\xe2\x94\x82|\xe2\x95\xb0|\||\+-)")
_POINTS_AT = re.compile(rb"\A\s*-+> ?\d+ |\A.{1,8}\xe2\x9d\xb1")
# IPython names the exception in front of the heading, and parts the frames by blank lines.
_NAMED = re.compile(rb"\A(?:\w+\.)*(\w+)\s+" + _HEADLINE)
_TYPES = {
    b"OutOfMemoryError": "oom",
    b"MemoryError": "host_oom",
    b"ImportError": "import_error",
    b"ModuleNotFoundError": "import_error",
    b"KeyboardInterrupt": "user_interrupt",
    b"ConnectionResetError": "communication",
    b"ConnectionAbortedError": "communication",
    b"ConnectionRefusedError": "communication",
    b"RemoteDisconnected": "communication",
    b"IncompleteRead": "communication",
    b"ChunkedEncodingError": "communication",
    b"ReadTimeout": "communication",
    b"ReadTimeoutError": "communication",
    b"ConnectTimeout": "communication",
    b"URLError": "communication",
}
# A collector of a terminal's page puts the time of each line into a line of its own.
_ONLY_A_CLOCK = re.compile(rb"\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?\s*\Z")
_DIGITS = re.compile(rb"\d")
_CARETS = re.compile(rb"\A\s*[\^~]+\s*\Z")

_CLIENTS = re.compile(
    rb"[/\\](?:site|dist)-packages[/\\](?:httpx|httpcore|h11|anyio|urllib3|requests|aiohttp|botocore|websockets"
    rb"|grpc|redis)[/\\]|[/\\]python3\.\d+[/\\](?:http[/\\]client|socket|ssl)\.py"
)
"""Files of clients of services."""
_CHILD = re.compile(rb"\bProcess [\w-]+-\d+(?::\d+)*:\s*\Z")
_CHANNELS = re.compile(
    rb"[/\\]multiprocessing[/\\](?:connection|managers|pool|queues|reductions?|resource_sharer)\.py\""
)
"""Python's name of a child, and files of what children and their parent talk through."""
_LAST = 20
_ALL = re.compile(rb"(?<![\d.])100(?:\.0+)? ?%")

Numbered = Sequence[tuple[int, bytes]]
"""Lines with their numbers."""


def named_type(header: bytes) -> str:
    """The error type that the header itself names; "" if it names none, or one of many causes."""
    return _TYPES.get(exception_named_in(header), "")


def names_a_library_s_exception(header: bytes) -> bool:
    """Whether the header names an exception that Python itself lacks. It tells more than the code."""
    name = exception_named_in(header).decode("utf-8", "replace")
    return name != "" and not hasattr(builtins, name)


def exception_named_in(header: bytes) -> bytes:
    """The exception's name, without its module, that IPython prints in front of the heading; else empty."""
    named = _NAMED.match(header[front(header) :])
    return b"" if named is None else named[1]


def last_code(lines: Numbered) -> int:
    """The number of the line of code that a traceback shows last. Its header comes first."""
    header = lines[0][1]
    shown = [(number, _words(line, header)) for number, line in lines if not marks_lines_left_out(line)]
    pointed = (number for number, words in reversed(shown) if _POINTS_AT.match(words))
    return next(pointed, next(number for number, words in reversed(shown) if not _CARETS.match(words)))


def header_of(lines: Numbered) -> int | None:
    """The index of the header of a traceback that fills the rest of the lines; None without one."""
    for index in range(len(lines) - 1, max(len(lines) - 1 - _LONGEST, -1), -1):
        header = lines[index][1]
        boxed = _BOX_HEADER.match(header[front(header) :]) is not None
        if boxed or _HEADER.search(header):
            below = (line for _, line in lines[index + 1 :] if not marks_lines_left_out(line))
            rest = [_words(line, header) for line in below]
            stamped = [words for words in rest if _ONLY_A_CLOCK.match(words) is None]
            if exception_named_in(header) or len(stamped) < len(rest) or any(map(_SPACED.match, rest)):
                rest = [words for words in stamped if words.strip()]
            fills = all(map(_BOX.match, rest)) if boxed else are_frames(rest)
            return index if fills and not is_quiet(header) else None
    return None


def are_frames(lines: Sequence[bytes]) -> bool:
    """Whether each line is a frame, the code behind one, or what stands below code."""
    above = b""
    for line in lines:
        if not (_FRAME.match(line) or _SOURCE.match(line) or _FRAME.match(above) or _SPACED.match(line)):
            return False
        above = line
    return True


def _words(line: bytes, header: bytes) -> bytes:
    """The line without what stands before the words of this header, too: a pod, a job of CI, a rank.

    Numbers may differ: a collector prints the time of each line. What another step of a job of CI printed
    stays whole.
    """
    before = header[: header.rfind(b"Traceback (most recent")]
    step = before.rpartition(b"\t")[0]
    if step[:1].isalpha() and not line.startswith(step):
        return line
    own = line[: len(before)]
    if before.strip() and _DIGITS.sub(b"0", own) == _DIGITS.sub(b"0", before):
        return line[len(before) :]
    return line[front(line) :]


def is_within_a_client(lines: Numbered) -> bool:
    """Whether the last frame of a traceback is of a client of a service: that was asked when it failed."""
    frames = (line for _, line in reversed(lines) if b'File "' in line)
    return _CLIENTS.search(next(frames, b"")) is not None


def says_all_is_done(above: Numbered) -> bool:
    """Whether one of the last lines is a bar, or a count of percents, that has reached its end."""
    return any(_ALL.search(line) for _, line in above[-_LAST:])


def is_of_a_child_left(above: Numbered, lines: Numbered) -> bool:
    """Whether a child process raised it while it talked to its parent, as if that had gone.

    `above`: the last lines before the header of the traceback, which `lines` begins with.
    """
    frames = (line for _, line in reversed(lines) if b'File "' in line)
    named = any(_CHILD.search(line) for _, line in above)
    return named and _CHANNELS.search(next(frames, b"")) is not None
