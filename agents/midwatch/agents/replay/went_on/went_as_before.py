"""Went as before: a program caught an exception, and went on with the lines that it had printed above. Pure.

An evaluation prints a heading, some findings and an answer for each of its items. It counts in no line, and
tells of no result that a rule knows. Where lines of several forms go on behind a caught exception as they
stood above, the next items followed. A process that ended may write behind its exception what a buffer held
back, so more than such a buffer must stand there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind, text_of
from midwatch.agents.replay.reading.printed_forms import form_of_print, own_part
from midwatch.agents.replay.went_on.aftermath import printed_by_a_handler
from midwatch.agents.replay.went_on.counted_on import is_cut
from midwatch.agents.replay.went_on.monitors import without_lists
from midwatch.agents.replay.went_on.process_ends import speaks_of_many

_READ = 3000
_BUFFER = 8192
"""Bytes that a stream holds back at most."""
_FORMS = 3
"""Forms of lines that stand above and go on below, each with so many different ones:"""
_ABOVE, _BEHIND = 2, 3
_LETTERS = re.compile(r"[\W\d_]+")
_LEAST_LETTERS = 6
_LONGEST = 400
_OF_A_STACK = re.compile(
    r"\A\s*(?:File |Traceback|[\^~.]|During handling|The above|raise |return |self\.|with |for |if |await )"
    r"|Error\b|Exception\b|Warning\b|(?i:\bwait\w*|\bretry\w*|\bheart ?beat)|\d%\||\dit/s|s/it\b|wandb:"
)
_GENERATED = re.compile(
    r"\bFile \"(?:/tmp|/var/tmp|/var/folders/[^\"]+|/dev/shm)/(?:\S+/)?tmp[a-z0-9_]{8}\w*\.py\", line \d"
)
"""A file of Python's `tempfile`: what a program wrote, ran and judged."""
_FRAMES = 12  # lines above the exception of such code


def went_as_before(file: LogFile, last: int) -> bool:
    """Whether the program that caught the exception of line `last` went on as above. Raises OSError."""
    text = text_of(file)
    if not text or speaks_of_many(text) or not _was_caught(file, last):
        return False
    behind = list(islice(lines_behind(file, last), _READ))
    if sum(len(line.encode()) + 1 for line in behind) <= _BUFFER:
        return False
    first = max(last - 1 - _READ, 0)
    above = _forms(islice(lines_behind(file, first), last - 1 - first))
    same = [
        form for form, told in _forms(behind).items() if len(told) >= _BEHIND and len(above[form]) >= _ABOVE
    ]
    return len(same) >= _FORMS


def _was_caught(file: LogFile, last: int) -> bool:
    """Whether a handler printed the traceback, or the exception is of code that the program only judged."""
    if printed_by_a_handler(file, last):
        return not is_cut(file, last)
    first = max(last - 1 - _FRAMES, 0)
    return any(map(_GENERATED.search, islice(lines_behind(file, first), last - 1 - first)))


def _forms(lines: Iterable[str]) -> dict[str, set[str]]:
    """The program's own lines by their form. Ranks that lag print the same ones again."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in without_lists(lines):
        if len(line) > _LONGEST or _OF_A_STACK.search(line):
            continue
        form = form_of_print(line)
        if len(_LETTERS.sub("", form)) >= _LEAST_LETTERS:
            found[form].add(own_part(line))
    return found
