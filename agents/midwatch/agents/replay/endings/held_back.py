"""Held back: what a program had printed before its end stands behind its traceback. Pure.

Python writes an error at once. What it prints goes into a file in pieces of 8 KiB, the last one as it ends.
A script flushes that in front of its traceback, and a module that `python -m` runs does not. Then the last
lines stand behind the exception that ended it, and are no work that went on. Either none of their kind
stands above, or they count on from there. What another program writes has warnings, bars or a logger's lines
among it, or it counts anew.

Nor does a logger flush what a script had printed. So where the logger's lines end with an exception, and no
printed line stands among them, all that was printed may stand behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from midwatch.agents.replay.reading.log_files import LogFile, text_of
from midwatch.agents.replay.reading.printed_forms import CLOCK, form_of_print, numbers_in
from midwatch.agents.replay.went_on.process_ends import (
    behind_the_logged,
    behind_the_only_module,
    speaks_of_many,
)

HELD_BACK = (
    "what stands behind the exception had been printed before it, and was written as the program ended"
)

_HEADER = b"Traceback (most recent call last):"
_BUFFER = 8192
_MEASURES = re.compile(r"\d\.\d")
_FEW = 2  # lines with measures, without which nothing speaks of work
_LOGGED = 5  # lines of a logger, which a program has that tells by it how its work goes
_BESIDE = 8  # lines above the traceback, among them warnings
_AT_ONCE = re.compile(
    rf"(?m){CLOCK}|Warning\b|\d%\||\bit/s\b|\bs/it\b|^nohup:|^\s*warnings\.warn|^wandb:|^\+ "
    r"|^(?:srun|slurmstepd|mpirun): |: line \d+: |^\[?[WIEF]\d{4}|^\s*(?:real|user|sys)\s+\d+m"
    r"|\b(?:INFO|WARN(?:ING)?|ERROR|DEBUG|CRITICAL)\b"
)
"""What goes to the standard error, or comes from a shell: no buffer of the program holds it back."""


def held_back_behind(file: LogFile) -> int:
    """The number of the exception's last line behind which only such lines stand; 0 if there is none.

    Raises OSError.
    """
    raw = text_of(file)
    if not raw or speaks_of_many(raw):
        return 0
    at = behind_the_logged(raw)
    if at and _was_printed(raw, at) and _only_logged(raw[:at]):
        return raw.count(b"\n", 0, at)
    at = behind_the_only_module(raw)
    behind = raw[at:].decode("utf-8", "replace")
    if not at or not _was_printed(raw, at):
        return 0
    lines = [line for line in behind.split("\n") if line.strip()]
    if sum(1 for line in lines if _MEASURES.search(line)) < _FEW:
        return 0
    above = raw[: raw.index(_HEADER)].decode("utf-8", "replace").split("\n")
    forms = set(map(form_of_print, above))
    known = any(form_of_print(line) in forms for line in lines)
    return raw.count(b"\n", 0, at) if not known or _counts_on(above[-_BESIDE:], lines[0]) else 0


def _was_printed(raw: bytes, at: int) -> bool:
    """Whether a buffer may hold all that stands from there on."""
    return len(raw) - at <= _BUFFER and not _AT_ONCE.search(raw[at:].decode("utf-8", "replace"))


def _only_logged(raw: bytes) -> bool:
    """Whether no printed line stands between the logger's first line and its last traceback.

    What a shell printed may stand above. Further lines of a message are indented.
    """
    lines = raw[: raw.rindex(_HEADER)].decode("utf-8", "replace").split("\n")
    told = [line for line in lines if line.strip() and not line[0].isspace()]
    first = next((number for number, line in enumerate(told) if _AT_ONCE.search(line)), len(told))
    return len(told) - first >= _LOGGED and all(map(_AT_ONCE.search, told[first:]))


def _counts_on(above: Sequence[str], line: str) -> bool:
    """Whether the line is the next of its form: a whole number in it is higher, and none is lower."""
    last = next((each for each in reversed(above) if form_of_print(each) == form_of_print(line)), "")
    pairs = [
        (int(one), int(other))
        for one, other in zip(numbers_in(last), numbers_in(line), strict=False)
        if one.isdecimal() and other.isdecimal()
    ]
    return any(one < other for one, other in pairs) and all(one <= other for one, other in pairs)
