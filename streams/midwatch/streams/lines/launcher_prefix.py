"""What launchers, containers and log collectors print in front of each line that they pass on. Pure."""

from __future__ import annotations

import re

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_ALWAYS_THE_SAME = (
    r"\[(?:rank|default)\d+\]:? ?"  # torch, torchrun --tee
    r"|\[\d+(?:,[\w:-]+)*\]<std\w+>: ?"  # mpirun --tag-output, Horovod, SageMaker
    r"|\d+: "  # srun --label
    r"|\([^()]*pid=\d[^()]*\) "  # Ray, SkyPilot
    r"|[A-Za-z][\w.-]*\d +\| "  # Docker Compose
    r"|[a-z][\w.-]*\d: |\d+\.\d+\.\d+\.\d+: "  # pdsh: a host with a number
    r"|\[pod/[^\]]+\] "  # kubectl logs --prefix
)
_STAMP = (
    rf"\[?\d\d\d\d-\d\d-\d\d[T ]{_CLOCK}(?: ?(?:Z|[+-]\d\d:?\d\d))?\]? (?:std(?:out|err) [FP] )?"  # containers, CI, ts
    rf"|[A-Z][a-z][a-z] [ \d]\d {_CLOCK} (?:[\w.-]+ [\w./@-]+(?:\[\d+\])?: )?"  # syslog, journald, ts
)

FRONT = rf"(?: *(?:{_ALWAYS_THE_SAME}|{_STAMP}))*"
"""A pattern of any number of such prefixes, for RE2 and for `re`; behind `^`.

A clock at the beginning is one too, whoever printed it: the line's own words stand behind it.
"""
SPEAKER = rf"(?:{_ALWAYS_THE_SAME})*"
"""The same without clocks, so that all lines of one writer have the same."""

_LONGEST = 240
_FRONT = re.compile(FRONT.encode())


def front(line: bytes) -> int:
    """How many bytes of a line, of at most its first 240, are such prefixes."""
    found = _FRONT.match(line, 0, _LONGEST)
    return found.end() if found else 0
