"""Exceptions that are printed and passed over: Python ignores them, or a search of parameters counts them.

Pure: the input is a chunk's text and the offset of a line in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from midwatch.agents.match.lines_above import lines_above
from midwatch.streams.lines.log_levels import got_over, is_about_a_view

HEADER = b"Traceback (most recent call last):"
SOURCE_BYTES = 8192
"""Bytes above a line that hold its frame, with lines of other writers."""
IGNORED = re.compile(
    rb"Exception ignored (?:in|on|while)|--- Logging error ---|WON'T CONVERT"
    rb"|in atexit callback|Error in (?:atexit\._run_exitfuncs|sys\.excepthook:)"
    rb"|Exception in thread (?:.*auto_conversion|(?:NetStatThr|ChkStopThr|IntMsgThr|MsgRouterThr)\b"
    rb"|[^\n]*\(_readerthread\):)"  # of subprocess, which reads what a command prints
    rb"|\bError when executing tool: |\bUncaught exception in compile_worker subprocess\b"
)
# Optuna logs each trial that fails. If its study does not catch that, Python prints the exception once more.
OF_A_TRIAL = re.compile(
    rb"\b[Tt]rial ?#?\d+ (?:failed with parameters: |failed because of |as TrialState\.FAIL because of )"
)
_ANNOUNCED = b"Exception ignored "
_AT_EXIT = b"Error in atexit._run_exitfuncs:"
_CALL_STACK = b"Call stack:"
"""Python's logging prints it behind the exception of a record that it could not write, and goes on."""
# Its exception may have a message of several lines, or a narrow window folded it.
_FOLDED_ABOVE = re.compile(rb"\n(?:(?!Traceback )[^\n]{1,120}\n){1,6}?Call stack:\n")
# What a library logs with its tracebacks and goes on: JAX without a plugin, Ray Train on a busy node,
# torchvision with a mirror left, an evaluation without its faster code.
_GONE_ON = (
    b"Failed to download (trying next):",
    b"Jax plugin configuration error: ",
    b"Failed to send resource request for train-",
    b"Failed to stop PlacementGroupCleaner gracefully",
    b"Janitor running in python mode",
)
# TensorFlow's native code asks protobuf for what its sixth version has no more, prints that, and goes on.
_OLD_PROTOBUF = b"AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'"
# A module built for NumPy 1 prints this under NumPy 2, and only then raises its ImportError, or does without.
_OLD_NUMPY = b"AttributeError: _ARRAY_API not found"
# PowerShell 5 heads the first line that a program writes to stderr so, whatever it says, and folds all lines.
_OF_POWERSHELL = re.compile(
    rb"(?:[^\n]{0,400}[\s,])?(?:[\w.]+\.)?RemoteException\s*\n[ \t]*\+\s*FullyQualifiedE"
    rb"|[\s+]*FullyQualifiedError\s*Id\b|[ \t]*(?:: )?[NativeComm]{0,10}andError[ \t]*\n"
)
_FRAMES = b"FullyQualifiedE"
_CHAINED = (b"The above exception was the direct cause of ", b"During handling of the above exception, ")
_NOTHING_MORE = re.compile(rb"\s*\Z")
_TRIES_AGAIN = re.compile(rb"(?i)\bretr(?:y|ied)")
_TOLD = (
    b"kipp",
    b"gnor",
    b"alling back",
    b"witching to",
    b"ubstituting",
    b"instead",
    b"going on",
    b"moving on",
    b"goes on",
    b"went on",
    b"ontinuing",
    b"Trial ",
    b"etrics",
    b"elemetry",
)
"""Parts of words with which a record above a traceback may say that its program goes on."""
_OF_A_PROCESS = (
    b'"""',
    b"concurrent.futures.process._RemoteTraceback:",
    b"multiprocessing.pool.RemoteTraceback:",
)
_FITS_FAILED = b"failed with the following error:\n"
_FITS_COUNTED = b", FitFailedWarning)"
# One search tells that none of them is there, as in most chunks. Its library is fast with this kind alone.
_any_of_these = BytesAhoCorasick(
    (_FITS_FAILED, _FITS_COUNTED, _ANNOUNCED, _AT_EXIT, *_GONE_ON, *_TOLD, _FRAMES),
    matchkind=MatchKind.LeftmostFirst,
).find_matches_as_indexes


def is_passed_over(text: bytes, start: int, end: int, speaker: bytes) -> bool:
    """Whether Python ignored the exception, a search of parameters counted it, or its library went on."""
    if text.startswith(_OLD_PROTOBUF, start + len(speaker)):
        # Without a traceback: the code of a script has one, and fails.
        return not any(line[:1].isspace() for _, line in islice(lines_above(text, start, speaker), 1))
    if text.startswith(_OLD_NUMPY, start + len(speaker)):
        return not _NOTHING_MORE.match(text, end)
    near = _passed_over_near(text, start // SOURCE_BYTES)
    fits_failed, announced, gone_on, told, at_exit, framed = near
    of_a_record = text.startswith(_CALL_STACK, end + 1 + len(speaker)) or _FOLDED_ABOVE.match(text, end)
    framed = framed and _OF_POWERSHELL.match(text, start) is not None
    if of_a_record or framed or (fits_failed and _is_counted_fit(text, start, end)):
        return True
    if (at_exit or announced) and _is_right_below(lines_above(text, start, speaker)):
        return True
    told = told and not _NOTHING_MORE.match(text, end)  # who writes no more may have ended
    if (gone_on or told) and _is_of_one_that_goes_on(lines_above(text, start, speaker), told=told):
        return True
    announced = announced and text.rfind(_ANNOUNCED, max(start - SOURCE_BYTES, 0), start) >= 0
    return announced and _all_ignored(text[start + len(speaker) : end], lines_above(text, start, speaker))


@lru_cache(maxsize=16)
def _passed_over_near(text: bytes, part: int) -> tuple[bool, bool, bool, bool, bool, bool]:
    """Whether such words are in a part of a chunk, or above.

    In this order: failed fits, ignored ones, libraries, records of a program, an exit, PowerShell's frame.

    Few chunks hold any, and a storm asks for each of its lines.
    """
    first, end = max(part - 1, 0) * SOURCE_BYTES, (part + 1) * SOURCE_BYTES
    if not _any_of_these(text[first : end + SOURCE_BYTES]):
        return (False,) * 6
    fits_failed, announced, at_exit = (
        text.find(words, first, end) >= 0 for words in (_FITS_FAILED, _ANNOUNCED, _AT_EXIT)
    )
    gone_on, told = (any(text.find(words, first, end) >= 0 for words in group) for group in (_GONE_ON, _TOLD))
    framed = text.find(_FRAMES, first, end + SOURCE_BYTES) >= 0  # it ends below the line
    return fits_failed, announced, gone_on, told, at_exit, framed


def _is_right_below(above: Iterator[tuple[int, bytes]]) -> bool:
    """Whether Python's word on an exit or an ignored exception stands right above, without a traceback.

    A traceback needs modules that may be gone by then, and an exception of Python's own code has none.
    """
    return any(_AT_EXIT in line or _ANNOUNCED in line for _, line in islice(above, 1))


def _is_of_one_that_goes_on(above: Iterator[tuple[int, bytes]], *, told: bool) -> bool:
    """Whether a library or the program (`told`) logged the traceback above, or its chain, and went on.

    A program's record stands right above the first traceback. What it says of a retry counts elsewhere.
    """
    chained = headed = False
    for _, line in above:
        if any(words in line for words in _GONE_ON):
            return True
        words = line.strip()
        if not words or words in _OF_A_PROCESS:
            continue
        if told and headed and _tells_of_going_on(line):
            return True
        headed = line.startswith(HEADER)
        if line[:1].isspace() or headed:
            continue
        if not (chained or line.startswith(_CHAINED)):
            return False
        chained = line.startswith(_CHAINED)
    return False


def _tells_of_going_on(line: bytes) -> bool:
    if is_about_a_view(line) or OF_A_TRIAL.search(line):
        return True
    return got_over(line) and _TRIES_AGAIN.search(line) is None


def _is_counted_fit(text: bytes, start: int, end: int) -> bool:
    """Whether the exception is one of several in a search's warning of failed fits."""
    if text.rfind(_FITS_FAILED, max(start - SOURCE_BYTES, 0), start) < 0:
        return False
    return text.find(_FITS_COUNTED, end, end + 8 * SOURCE_BYTES) >= 0


def _all_ignored(words: bytes, above: Iterator[tuple[int, bytes]]) -> bool:
    """Whether the line ends one of several tracebacks that were printed through one another, all ignored.

    Workers that leave at once print the same error so. Each announces its traceback as ignored. The words
    of one may stand in pieces: `OSError: Traceback (most recent call last):`, and below it the rest.
    """
    announced = begun = 0
    for _, line in above:
        if HEADER in line:
            begun += 1
        elif IGNORED.search(line):
            announced += 1
        elif not words.endswith(line) and not line[:1].isspace():
            break
    return announced >= begun > 1
