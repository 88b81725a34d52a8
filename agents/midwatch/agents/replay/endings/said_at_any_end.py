"""Said at any end: what a shell, a tracker or an interpreter prints last, however the program ended. Pure.

Such lines tell nothing of the end. So the program's own last words stand above them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from midwatch.streams.lines.launcher_prefix import front

_SAID = re.compile(
    rb"\s*(?:"
    rb"(?:real|user|sys)\s+(?:\d+m)?[\d.,]+s?"  # the shell's `time`
    rb"|[\d.]+user [\d.]+system [\d:.]+elapsed .*|\d+inputs\+\d+outputs .*"  # GNU time
    rb"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[AP]M )?[A-Z]{2,5} \d{4}"  # `date`
    rb"|wandb:(?!.*(?i:error|fail|abort|interrupt)).*"
    rb"|.*\b(?:resource|semaphore)_tracker: .{0,20}There appear to be \d+ leaked .*|len\(cache\)\)"
    rb"|warnings\.warn\(.{0,3}(?:resource|semaphore)_tracker: .*"
    rb"|.*\bprocess group has NOT been destroyed before we destruct .*"
    rb"|If you suspect this is an IPython \S+ bug, please report it at:|https://github\.com/ipython/ipython/issues"
    rb"|or send an email to the mailing list at \S+|You can print a more detailed traceback right now with .*"
    rb"|to interactively debug it\.|Extra-detailed tracebacks for bug-reporting purposes can be enabled via:"
    rb"|%config Application\.verbose_crash=True"  # IPython's own hook, behind any exception
    rb"|[-=*_~#]{4,}"
    rb")?\s*"
)


def is_said_at_any_end(line: bytes) -> bool:
    """Whether the line is one of these, or empty."""
    return _SAID.fullmatch(line[front(line) :]) is not None


def before_the_last_word_of_others(lines: Sequence[tuple[int, bytes]]) -> Sequence[tuple[int, bytes]]:
    """The lines up to the last one that the program itself may have printed."""
    kept = len(lines)
    while kept and is_said_at_any_end(lines[kept - 1][1]):
        kept -= 1
    return lines[:kept]
