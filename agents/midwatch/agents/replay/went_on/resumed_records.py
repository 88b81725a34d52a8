"""Resumed records: a program prints an exception in a record of its own, and such records go on. Pure.

Whoever prints an exception within a line of its own form has caught it. Where the lines of that form go on
as they stood above, it also got over it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, takewhile

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind
from midwatch.agents.replay.reading.printed_forms import CLOCK, LEVEL, NUMBER, own_part

_HEAD = 10
"""Letters without numbers, clock and level that the records share."""
_KIND = 24
"""Letters that tell the kind of a record. Where the record that failed shares them, the whole line does."""
_AGAIN = 3
_READ = 2000
_CLOCK, _NUMBER, _LEVEL = re.compile(CLOCK), re.compile(NUMBER), re.compile(rf"(?i){LEVEL} *")
# glog stamps each line of a message. Behind its first line they are indented, or empty.
_OF_A_MESSAGE = re.compile(r"[IWEF]0 T 0 [\w./-]+:0\](?:\s{2}| ?\Z)")
_ONE_OF_MANY = re.compile(r"(?i)\b(?:rank|worker|node|gpu|actor|proc\w*|pid)\b")
_WORKER = re.compile(r"\A(?:\x1b\[\d+m)?\([\w.:<>]{1,80} pid=\d+[^()]{0,40}\)")
"""How a worker's lines begin. Those of others show nothing of it."""
_EXCEPTION = re.compile(r"\A\W*(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)\b|\ATraceback\b")


def resumes_records(file: LogFile, last: int) -> bool:
    """Whether the record of line `last` is followed by ones as they stood above it. Raises OSError."""
    first = max(last - 1 - _READ, 0)
    *above, own = islice(lines_behind(file, first), last - first)
    form = _form(own)
    head = form[:_HEAD]
    if len(head) < _HEAD or not re.search(r"[0T\"]", head) or _EXCEPTION.match(form) or own[:1].isspace():
        return False
    if _ONE_OF_MANY.search(form[: 4 * _HEAD]):
        return False
    forms = list(map(_form, above))
    known = {_kind(each, form) for each in forms if each.startswith(head) and "0" in each[_HEAD:]} - {form}
    worker = _WORKER.match(own)
    name = "" if worker is None else worker[0]
    rest = [_form(line) for line in islice(lines_behind(file, last), _READ) if line.startswith(name)]
    behind = [_kind(each, form) for each in _behind_its_message(rest, forms, form) if not _is_within(each)]
    return sum(1 for each in behind if each in known) >= _AGAIN


def _behind_its_message(rest: Sequence[str], above: Sequence[str], form: str) -> Sequence[str]:
    """The lines without those that first stood behind the same words above: they belong to one message."""
    if form not in above:
        return rest
    first = above.index(form)
    records, message = set(above[:first]), above[first + 1 :]
    own = takewhile(
        lambda pair: pair[0] == pair[1] and pair[0] not in records, zip(rest, message, strict=False)
    )
    return rest[sum(1 for _ in own) :]


def _is_within(form: str) -> bool:
    return _OF_A_MESSAGE.match(form) is not None


def _kind(form: str, failed: str) -> str:
    return form if form[:_KIND] == failed[:_KIND] else form[:_KIND]


def _form(line: str) -> str:
    return _NUMBER.sub("0", _LEVEL.sub("L", _CLOCK.sub("T", own_part(line)))).strip()
