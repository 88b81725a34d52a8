"""Counted on: behind a saved log's last failure a program counts on and measures, in lines of one form. Pure.

Rules know the steps of frameworks, and each program prints its own in words of its own. What they have in
common: lines of one form, one number that rises, and others that are measured. A process that an exception
has ended prints none. But its buffer may be written behind its traceback. That holds only some lines, and the
traceback then begins within the line at which the buffer was cut.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind, text_of
from midwatch.agents.replay.reading.printed_forms import form_of_print, numbers_in, without_clock
from midwatch.agents.replay.went_on.aftermath import printed_by_a_handler
from midwatch.agents.replay.went_on.good_ends import good_ends
from midwatch.agents.replay.went_on.monitors import is_of_a_monitor
from midwatch.agents.replay.went_on.process_ends import speaks_of_many

_LEAST = 4
"""Different counts behind a failure. Ranks that lag print one or two more."""
_SOME, _MANY = 8, 16
_READ = 4000
_LONGEST = 400
_HEAD = 10
_TRACEBACK = 120  # lines
_OF_A_NOTEBOOK = re.compile(r"(?:\w+\.)*\w+ {2,}")  # IPython's: it names the exception in front
_OF_A_WORKER = "Original"  # PyTorch's word in front of the traceback of a worker that loads data
_OF_A_BOX = re.compile(r"[╭┌┏][─━]+")  # rich's, around a traceback
_TOTAL = re.compile(r"(\d+) ?(?:/|of) ?(\d+)")
_WAITS = re.compile(
    r"(?i)\b(?:wait\w*(?! ?[=:] ?\d)|retr(?:y|ies|ying)|heart ?beats?|poll\w*|still|sleep\w*|ping"
    r"|upload\w*|download\w*|restart\w*|remaining|timeout|timed out|frame|attempt \d+ ?(?:/|of)|sent"
    r"|parts? \d+)\b|\dit/s|s/it\b|\A\s*File |wandb:"
)


class _Line(NamedTuple):
    numbers: tuple[str, ...]
    text: str


def counts_on(file: LogFile, last: int, *, ended: bool = False) -> bool:
    """Whether a program counts on behind line `last` of the file. Raises OSError.

    `ended`: somebody outside said that the job or a process has ended. Others of its processes may count on
    for a while. Then only a count that reaches its total shows that the job itself goes on.
    It counted so above the line, too, or it reaches the total that it names. What counts for long may also
    have printed lines that begin so above, or tell of a good end. Behind words that it had said and got over
    before one count is enough.
    """
    behind = _by_form(islice(lines_behind(file, last), _READ))
    rising = {form: told for form, lines in behind.items() if (told := _rising(lines, _LEAST))}
    first = max(last - 1 - _READ, 0)
    *printed, own = islice(lines_behind(file, first), last - first)
    above = _by_form(printed)
    if rising and is_cut(file, last):
        return False
    ends = any(_reaches_its_total(lines) for lines in rising.values())
    if ends or ended:
        return ends
    if any(len(above.get(form, ())) > 1 for form in rising) or _finishes_its_count(file, last, above, behind):
        return True
    long = {form: len(behind[form]) for form in rising}
    if max(long.values(), default=0) >= _SOME and any(number > last for number in good_ends(file)):
        return True
    if _goes_on_as_before(printed, own, behind):
        return True
    heads = {form_of_print(line)[:_HEAD] for line in printed}
    return any(size >= _MANY and form[:_HEAD] in heads for form, size in long.items())


def _finishes_its_count(
    file: LogFile, last: int, above: Mapping[str, Sequence[_Line]], behind: Mapping[str, Sequence[_Line]]
) -> bool:
    """Whether a count that began above goes on to its total, and the program had caught the failure.

    If there is but one process, it had caught what did not end its count.
    """
    known = [form for form in behind if len(above.get(form, ())) >= _LEAST]
    joined = [
        (behind[form], told)
        for form in known
        if (told := _rising([*above[form][-_LEAST:], *behind[form]], _LEAST))
        and len(told) > len(behind[form])
    ]
    if not joined or is_cut(file, last):
        return False
    ends = any(_reaches_its_total(lines) for lines, _ in joined)
    text = text_of(file)
    if text and not speaks_of_many(text):
        return ends or any(len(lines) > 1 for lines, _ in joined)
    return ends and printed_by_a_handler(file, last)


def _goes_on_as_before(above: Sequence[str], own: str, behind: Mapping[str, Sequence[_Line]]) -> bool:
    """Whether the program said line `own` before, and a count went on behind that which now goes on.

    An exception that ends its process is said before by an earlier start. Its count begins again behind it.
    Below a line that is indented, a traceback, it says nothing.
    """
    words = form_of_print(own)
    at = next((at for at in reversed(range(len(above))) if form_of_print(above[at]) == words), None)
    if at is None or above[-1][:1].isspace():
        return False
    between = _by_form(above[at + 1 :])
    joined = [[*told[-_LEAST:], *behind[form]] for form, told in between.items() if form in behind]
    return any(len(_rising(lines, _LEAST)) > _LEAST for lines in joined)


def is_cut(file: LogFile, last: int) -> bool:
    """Whether the traceback of line `last` begins within a line, as where a buffer is written behind it."""
    first, below = max(last - _TRACEBACK, 0), ""
    for line in reversed(list(islice(lines_behind(file, first), last - first))):
        begin = line.find("Traceback (most recent call last)")
        if begin >= 0:
            before = form_of_print(line[:begin])
            if (
                before == _OF_A_WORKER
                or _OF_A_BOX.fullmatch(before)
                or _OF_A_NOTEBOOK.fullmatch(line[:begin])
            ):
                return False
            return before != "" and before != form_of_print(below[:begin])  # else a launcher printed it
        below = line
    return False


def _by_form(lines: Iterable[str]) -> dict[str, list[_Line]]:
    """The lines that measure, by their words without numbers, clocks and blanks."""
    found: dict[str, list[_Line]] = defaultdict(list)
    for line in lines:
        if len(line) > _LONGEST:
            continue
        own = without_clock(line)
        numbers = numbers_in(own)
        if len(numbers) > 1 and _WAITS.search(own) is None and not is_of_a_monitor(own):
            found[form_of_print(line)].append(_Line(numbers, own))
    return found


def _rising(lines: Sequence[_Line], least: int) -> list[_Line]:
    """The last of the lines in which one whole number rises and others are measured; [] if too few."""
    for place, value in enumerate(lines[-1].numbers):
        if not value.isdecimal():
            continue
        counts = [int(each.numbers[place]) if each.numbers[place].isdecimal() else -1 for each in lines]
        begin = len(counts) - 1
        while begin and 0 <= counts[begin - 1] <= counts[begin]:
            begin -= 1
        if len(set(counts[begin:])) >= least and _measures(lines[begin:], place):
            return list(lines[begin:])
    return []


def _measures(lines: Sequence[_Line], counter: int) -> bool:
    """Whether numbers with a fraction differ from line to line, and the last ones are finite."""
    if any(each.lstrip("+-").lower() in ("nan", "inf") for line in lines[-2:] for each in line.numbers):
        return False
    columns = list(zip(*(line.numbers for line in lines), strict=True))
    total = _TOTAL.search(lines[-1].text) is not None  # then whole numbers may measure, too
    return any(
        len(set(column)) >= _LEAST and (total or any("." in each for each in column))
        for place, column in enumerate(columns)
        if place != counter
    )


def _reaches_its_total(lines: Sequence[_Line]) -> bool:
    return any(int(count) == int(total) >= _LEAST for count, total in _TOTAL.findall(lines[-1].text))


def last_count(lines: Sequence[tuple[int, bytes]]) -> int:
    """The number of the last of those lines that belongs to a count; 0 without one."""
    texts = [(number, line.decode("utf-8", "replace")) for number, line in lines]
    found = _by_form(text for _, text in texts)
    counted = {form for form, told in found.items() if _rising(told, _LEAST)}
    return max((number for number, text in texts if form_of_print(text) in counted), default=0)
