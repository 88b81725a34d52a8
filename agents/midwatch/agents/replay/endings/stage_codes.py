"""Stage codes: a script or a parent tells how each of its parts ended, and one part ended badly. Pure.

`train exited 1`, then `export exited 0`: the script went on, and what the first part should have made is
missing. The same words with other numbers may be tries of one work. Of these the last one counts.

Some tell only of commands that failed. A driver that goes on behind several of them has no result of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import re2

from midwatch.agents.replay.reading.log_files import LogFile, text_of
from midwatch.agents.replay.reading.printed_forms import without_clock

_ENDS = rb"(?:joined|exited|finished|ended|done|returned|left|stopped)\b.{0,24}\d\W*"
_MAY_BE = re2.compile(rb"(?im)^.{1,120}\b" + _ENDS + rb"$")
_ENDED = re.compile(
    r"(?i)(?P<name>.{1,80}?)\b"
    r"(?P<how>(?:joined|exited|finished|ended|done|returned|left|stopped)\b[,:]? ?(?:with )?"
    r"(?:exit[ _]?)?(?:code|status|rc)?[ =:]{0,3})(?P<code>-?\d{1,3})\W*"
)
_ALLOWED = re.compile(
    rb"(?i)\b(?:optional|allowed|ignored?|ignoring|tolerated|non-?fatal|best.effort|not needed|anyway)\b"
)
"""Words beside a bad code: nobody needs that part."""
_BESIDE = 200  # bytes
_ASKED = (143, -15)
"""Codes of what somebody asked to end, as a script asks its monitor behind the training."""
_FAILED = re2.compile(
    rb"(?im)^.{0,120}\b(?:command|subprocess|stage|step|script) failed with (?:exit )?(?:code|status)"
    rb"[ :=]{0,3}[1-9]\d{0,2}\W*$"
)
_AGAIN = re.compile(rb"(?i)\b(?:re-?tr(?:y|ies|ied|ying)|attempt \d+|again|restart\w*)\b")
_LEAST, _NEAR_END = 2, 4000
"""The least commands that failed, and the bytes from the end in which the last of them stands."""
_DIGITS = re.compile(r"\d+")


def failed_commands(file: LogFile) -> int:
    """The number of the first line that tells of a command's bad code, if several do up to the end; or 0.

    Raises OSError.
    """
    text = text_of(file)
    told = list(_FAILED.finditer(text))
    if len(told) < _LEAST or told[-1].end() < len(text) - _NEAR_END:
        return 0
    for line in told:
        beside = (text, max(line.start() - _BESIDE, 0), line.end() + _BESIDE)
        if _ALLOWED.search(*beside) or _AGAIN.search(*beside):
            return 0
    return text.count(b"\n", 0, told[0].start()) + 1


class _End(NamedTuple):
    number: int
    name: str
    code: int


def badly_ended_part(file: LogFile) -> int:
    """The number of the first line that tells of a part's bad code, which no later code mends; 0 if none.

    Other parts must have told of code 0 in the same words: so these words are of the parts of one work.
    Raises OSError.
    """
    text = text_of(file)
    told: dict[str, list[_End]] = {}
    at, number = 0, 1
    for line in _MAY_BE.finditer(text):
        found = _ENDED.fullmatch(without_clock(line[0].decode("utf-8", "replace")).strip())
        if found is None or _ALLOWED.search(text, max(line.start() - _BESIDE, 0), line.end() + _BESIDE):
            continue
        at, number = line.start(), number + text.count(b"\n", at, line.start())
        code = 0 if int(found["code"]) in _ASKED else int(found["code"])
        told.setdefault(found["how"], []).append(_End(number, found["name"], code))
    return min((number for ends in told.values() for number in _bad(ends)), default=0)


def _bad(ends: Sequence[_End]) -> Iterator[int]:
    """The lines of one wording that tell of parts that ended badly."""
    if all(end.code for end in ends):
        return
    kinds: dict[str, list[_End]] = {}
    for end in ends:
        kinds.setdefault(_DIGITS.sub("0", end.name), []).append(end)
    for same in kinds.values():
        if same[-1].code:
            last = {end.name: end for end in same}
            yield from (end.number for end in last.values() if end.code)
