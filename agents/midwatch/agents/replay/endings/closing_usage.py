"""The closing usage: a program that cannot read its command line prints how it is called, and ends. Pure.

So does one that prints the name which it does not know, and below it those that it knows.

docopt prints no error beside it, nor do many scripts. What a program advises at its end is a command with
values and an interpreter in front. A usage has placeholders, and the program's name stands first.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.endings.cut_tracebacks import Numbered
from midwatch.streams.lines.launcher_prefix import front

USAGE = "the log ends with how its program is called, as where a command line cannot be read"

NAMES = "the log ends with a name that its program does not know, and with those that it knows"
_UNKNOWN_NAME = re.compile(
    "(?i)\\A\\W*(?:(?:unknown|unrecogni[sz]ed|unsupported|invalid|no such|unbekannte\\w*) [\\w -]{2,40}"
    "|\uc54c \uc218 \uc5c6\ub294 [^:]{1,40}|(?:\u672a\u77e5|\u4e0d\u660e)[^:\uff1a]{1,40})"
    "[:\uff1a] ?\\S"
)
_KNOWN_NAMES = re.compile(
    "(?i)\\A\\W*(?:(?:available|known|valid|supported|possible)(?: [\\w -]{2,40})?|choose from|choices"
    "|verf\u00fcgbar[^:]{0,40}|\uc0ac\uc6a9 \uac00\ub2a5[^:]{0,20}|\u53ef\u7528[^:\uff1a]{0,20}"
    "|\u5229\u7528\u53ef\u80fd[^:\uff1a]{0,20})[:\uff1a] ?\\S.*[,|]"
)
"""In English, German, Korean, Chinese and Japanese."""

_MOST = 12  # forms of a command line
_HEADING = re.compile(rb"\A\s*[Uu]sage:\s*\Z")
_PLACEHOLDER = rb"(?:<[A-Za-z][\w .|-]*>|\[(?:options|-{1,2}[A-Za-z][\w-]*)[ =|\]]|\[[A-Z_]{2,}\])"
_CALL = rb"(?!(?:python|bash|sh|srun|torchrun|deepspeed|accelerate)[\d.]*\s)[\w./$-]+\s.*" + _PLACEHOLDER
_FORM = re.compile(rb"\A\s+" + _CALL)
_REFUSES = re.compile(
    rb"\A[\w./-]{1,60}: (?:[Ee]rror: |option requires "
    rb"|(?:invalid|illegal|unrecogni[sz]ed|unknown|unexpected|ambiguous) (?:option|argument))"
)
"""What a tool says above its help, of what it cannot read."""
_HELP = re.compile(rb"\A\s*[Uu]sage:")
_OPTION = re.compile(rb"\A\s*--?[A-Za-z]")
_LONGEST_HELP, _LEAST_OPTIONS = 60, 3
_LAST_WORDS = 16  # lines of a help behind its last option
_AT_ONCE = re.compile(rb"\A\s*[Uu]sage: +" + _CALL)


def usage_at_end(lines: Numbered) -> int | None:
    """The number of the usage's first line in which the lines end, or of the error above it; None without."""
    last = [
        (number, line[front(line) :] if line[:1].strip() else line) for number, line in lines if line.strip()
    ]
    if (refused := _refused_with_help(last[-_LONGEST_HELP:])) is not None:
        return refused
    if last and _AT_ONCE.match(last[-1][1]):
        return last[-1][0]
    for at in range(len(last) - 1, max(len(last) - 2 - _MOST, -1), -1):
        number, line = last[at]
        if _HEADING.match(line):
            return number if at + 1 < len(last) else None
        if not _FORM.match(line):
            return None
    return None


def _refused_with_help(lines: Numbered) -> int | None:
    """The number of the line in which a tool refuses its command line, where its help is all that follows."""
    for at in range(len(lines) - 1, 0, -1):
        if _HELP.match(lines[at][1]):
            options = [index for index in range(at, len(lines)) if _OPTION.match(lines[index][1])]
            if len(options) < _LEAST_OPTIONS or len(lines) - options[-1] > _LAST_WORDS:
                return None
            return lines[at - 1][0] if _REFUSES.match(lines[at - 1][1]) else None
    return None


def unknown_name_at_end(lines: Numbered) -> int | None:
    """The number of the line with the unknown name, if the last two lines are such; None otherwise."""
    last = [(number, _text(line)) for number, line in lines if line.strip()][-2:]
    if len(last) < 2 or _KNOWN_NAMES.match(last[1][1]) is None:
        return None
    return last[0][0] if _UNKNOWN_NAME.match(last[0][1]) else None


def _text(line: bytes) -> str:
    return line[front(line) :].decode("utf-8", "replace")
