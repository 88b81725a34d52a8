"""Nothing worked: a program counts at its end that none of its items succeeded, and all met one error. Pure.

Nor did anything work where a shell's loop misses the same program for each of its items, up to the last one.
Or each request that a program sends is refused.

Evaluations, generators and downloads catch the error of an item and go on with the next one. A model that is
weak solves nothing either. But then no error repeats itself, item by item, in the same words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from midwatch.agents.replay.endings.cut_tracebacks import Numbered
from midwatch.streams.lines.launcher_prefix import front
from midwatch.streams.records import Hit

NOTHING = "the job counts at its end that none of its items succeeded, and they all met the same error"

LACKED = "the log ends in items for each of which a shell missed the same program"

REFUSED = "the log ends in items of which each was refused, and no line tells of one that worked"

_ITEMS, _ITEMS_BEHIND = 5, 3
"""The least items of a shell's loop, and the most lines behind the last word on the missing program."""
_MISSED = re.compile(
    rb"\A(?:\S+: line \d+: |nohup: |env: |xargs: "
    rb"|\S*sh: (?:(?:line )?\d+: )?|timeout: failed to run command )"
    rb"[^:\s]{1,120}: (?:command not found|not found|No such file or directory)\s*\Z"
)
_REFUSALS, _AT_ONCE = 20, 64
"""The least items that are refused, and the most that a program may send at once."""
_UNKNOWN_USER = re.compile(
    rb"(?i)\b(?:error|status|code|http)\W{0,10}(?:code\W{0,4})?40[13]\b|\b40[13] (?:unauthorized|forbidden)\b"
    rb"|\b(?:invalid|incorrect|expired|unknown) (?:api[ _-]?key|token|credentials?)\b"
)
_SENT = 2
"""Times as many lines as refusals may say what is sent next. They have one form."""
_BEHIND = 24
"""Lines from the end in which such a count stands. A list of the items' errors may stand below it."""
_MESSAGE = 3
"""Lines of an error's message below its first one."""
_LEAST = 3
"""Items that met the error."""
_MOSTLY = 2
"""An item may tell its error in several lines, and not each in all of them. The first of these counts."""
_STRAY = 10
"""One in so many errors may be another one."""
_NONE = re.compile(
    rb"(?i)\b(?:success(?:es|ful(?:ly)?)?|succeeded|solved|evaluated|processed)"
    rb"(?: \w+)?\b ?[:=] {0,12}0(?:\.0+ ?%|\b(?![.\d]))"
    rb"|\b0 ?(?:/|of|out of) ?[1-9]\d* (?:\w+ ){0,2}(?:succeeded|successful\w*|solved|evaluated|processed)\b"
    rb"|\bsuccess rate ?[:=] ?0(?:\.0+)? ?%"
)
_ERROR = re.compile(
    rb"(?i)\berrors?\b|\bexceptions?\b|\btimed out\b|\brefused\b|[a-z](?:Error|Exception)\b"
    rb"|\bunsupported operand type|\bobject (?:has no attribute|is not (?:callable|subscriptable|iterable))\b"
    rb"|\bgot an unexpected keyword argument\b|\bmissing \d+ required (?:positional|keyword)"  # of Python
)
_COUNTED = re.compile(rb"(?i)\b(?:errors?|exceptions?|fail\w*)(?: \w+){0,2} ?[:=] ?\d")
_ITEM = re.compile(rb"\S*[\d/]\S*")
_NAMED = re.compile(rb"\b(?:ModuleNotFound|Import)Error\b|\bNo module named\b")
_SERVICE = re.compile(rb"(?i)\b(?:connection error|request timed out|connection (?:refused|reset|aborted))\b")


def nothing_worked(lines: Numbered, known: Mapping[int, Hit]) -> tuple[int, str] | None:
    """The first of the lines with that error, and its type; None if the lines tell of no such end.

    `known`: what rules know of the lines, by number.
    """
    counted = {line for _, line in lines if _NONE.search(line)}
    if not counted or counted.isdisjoint(_last(lines)):
        return None
    errors = [(number, line, _form(line)) for number, line in lines if _tells_an_error(line)]
    times = Counter(form for _, _, form in errors)
    stray = sum(count for count in times.values() if count < _LEAST)
    if not errors or stray * _STRAY > len(errors) or max(times.values()) < _LEAST:
        return None
    usual = {form for form, count in times.items() if count * _MOSTLY >= max(times.values())}
    met = [(number, line, form) for number, line, form in errors if form in usual]
    if lines[0][0] > 1:  # the first item may be cut: its last error stands last of all, too
        met = met[next(at for at, each in enumerate(met) if each[2] == met[-1][2]) + 1 :] or met
    number, line, _ = met[0]
    return number, known[number].error_type if number in known else _type_of(line)


def missed_by_each_item(lines: Numbered, known: Mapping[int, Hit]) -> tuple[int, str] | None:
    """The first line in which a shell misses the program of all items, and its type; None without such lines.

    What rules call a mere tool may be missing at each step of a training that does well.
    """
    told = [
        (number, _form(line))
        for number, line in lines
        if _MISSED.match(line[front(line) :]) and not (number in known and known[number].role == "context")
    ]
    same = [number for number, form in told if form == told[-1][1]]
    if len(same) < _ITEMS or sum(1 for number, _ in lines if number > same[-1]) > _ITEMS_BEHIND:
        return None
    return same[0], "config"


def refused_each_item(lines: Numbered) -> int | None:
    """The first of the refusals in which the lines end, item by item; None without them.

    Between them the program only says what it sends next. A line of another form may tell of what worked.
    """
    refused, announced = list[int](), Counter[bytes]()
    for number, line in reversed(lines):
        if _UNKNOWN_USER.search(line):
            refused.append(number)
        elif line.strip():
            announced[_form(line)] += 1
            if len(announced) > 1:
                break
    if len(refused) < _REFUSALS or lines[-1][0] - refused[0] > _ITEMS:
        return None
    return refused[-1] if announced.total() <= len(refused) * _SENT + _AT_ONCE else None


def _last(lines: Numbered) -> list[bytes]:
    """The last lines, without errors and without the lines that stand below them again and again."""
    own = [line[front(line) :].strip() for _, line in lines]
    errors = [at for at, (_, line) in enumerate(lines) if _tells_an_error(line)]
    following = pairwise([*errors, len(own)])
    below = Counter(words for at, stop in following for words in own[at + 1 : stop][:_MESSAGE])
    told = {at for at, words in enumerate(own) if below[words] >= _LEAST} | set(errors)
    return [line for at, (_, line) in enumerate(lines) if at not in told][-_BEHIND:]


def _tells_an_error(line: bytes) -> bool:
    return _ERROR.search(line) is not None and _COUNTED.search(line) is None


def _form(line: bytes) -> bytes:
    """The words of the line without the item: no names with a digit or a slash."""
    return _ITEM.sub(b"#", line[front(line) :].strip())


def _type_of(line: bytes) -> str:
    if _NAMED.search(line):
        return "import_error"
    return "communication" if _SERVICE.search(line) else "exception"
