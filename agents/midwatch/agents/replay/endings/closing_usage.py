"""The closing usage: a program that cannot read its command line prints how it is called, and ends. Pure.

docopt prints no error beside it, nor do many scripts. What a program advises at its end is a command with
values and an interpreter in front. A usage has placeholders, and the program's name stands first.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.endings.cut_tracebacks import Numbered
from midwatch.streams.lines.launcher_prefix import front

USAGE = "the log ends with how its program is called, as where a command line cannot be read"

_MOST = 12  # forms of a command line
_HEADING = re.compile(rb"\A\s*[Uu]sage:\s*\Z")
_PLACEHOLDER = rb"(?:<[A-Za-z][\w .|-]*>|\[(?:options|-{1,2}[A-Za-z][\w-]*)[ =|\]]|\[[A-Z_]{2,}\])"
_CALL = rb"(?!(?:python|bash|sh|srun|torchrun|deepspeed|accelerate)[\d.]*\s)[\w./$-]+\s.*" + _PLACEHOLDER
_FORM = re.compile(rb"\A\s+" + _CALL)
_AT_ONCE = re.compile(rb"\A\s*[Uu]sage: +" + _CALL)


def usage_at_end(lines: Numbered) -> int | None:
    """The number of the usage's first line in which the lines end; None without one."""
    last = [
        (number, line[front(line) :] if line[:1].strip() else line) for number, line in lines if line.strip()
    ]
    if last and _AT_ONCE.match(last[-1][1]):
        return last[-1][0]
    for at in range(len(last) - 1, max(len(last) - 2 - _MOST, -1), -1):
        number, line = last[at]
        if _HEADING.match(line):
            return number if at + 1 < len(last) else None
        if not _FORM.match(line):
            return None
    return None
