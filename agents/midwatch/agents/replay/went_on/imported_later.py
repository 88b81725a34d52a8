"""Imported later: a module that a one-line probe missed speaks behind it, so another interpreter has it.

A batch script asks `python -c "import toy"` before it has its environment, and works with the toy later.
"""

from __future__ import annotations

import re
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind

_MISSED = re.compile(r"\AModuleNotFoundError: No module named '(?P<module>\w+)[\w.]*'\s*\Z")
_OF_THE_COMMAND_LINE = re.compile(r"\A  File \"<string>\", line \d+, in <module>\s*\Z")
_READ = 400


def imported_later(file: LogFile, last: int) -> bool:
    """Whether line `last` is such a probe's, and a file of the module speaks behind it. Raises OSError."""
    if last < 2:
        return False
    above, missed, *behind = [*islice(lines_behind(file, last - 2), 2 + _READ), "", ""]
    found = _MISSED.match(missed)
    if found is None or _OF_THE_COMMAND_LINE.match(above) is None:
        return False
    speaks = re.compile(rf"(?:\A|[\s/]){found['module']}/[\w./-]+\.(?:py|cc|cpp|cu|c|h):\d+")
    return any(speaks.search(line) for line in behind)
