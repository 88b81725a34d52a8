"""What launchers, containers and log collectors print in front of each line that they pass on. Pure."""

from __future__ import annotations

import re

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_ZONE = r"(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_ALWAYS_THE_SAME = (
    r"\[rank\d+\]:? ?|\[[A-Za-z]\w*\d\]: ?"  # torch, torchrun --tee: the role and its rank
    r"|\[\d+(?:,[\w:-]+)*\]<std\w+>: ?"  # mpirun --tag-output, Horovod, SageMaker
    r"|\d+: "  # srun --label
    r"|\([^()]*pid=\d[^()]*\) "  # Ray, SkyPilot
    r"|[A-Za-z][\w.-]*\d +\| "  # Docker Compose
    r"|[a-z][\w.-]*\d: |\d+\.\d+\.\d+\.\d+: "  # pdsh: a host with a number
    r"|\[pod/[^\]]+\] "  # kubectl logs --prefix
    r"|[a-z][\w-]*-\w*\d\w* (?:pytorch|tensorflow|train(?:er|ing)?|main|node|worker|launcher|master) "
    # stern: the pod and its container, of which the usual names count
    r"|\{\w+=\"[^{}\n]*\"\} "  # Loki: the labels of the stream
)
# Vertex AI: the collector's own level, a time and the worker.
_GRADED = r"[A-Z]+[ \t][\d: +-]+[ \t]workerpool\d+-\d+[ \t]"
_WITH_A_CLOCK = (
    rf"\[?\d\d\d\d-\d\d-\d\d[T ]{_CLOCK}{_ZONE}\]? (?:std(?:out|err) [FP] )?"  # containers, CI services, ts
    rf"|[A-Z][a-z][a-z] [ \d]\d {_CLOCK} (?:[\w.-]+ (?:[\w./@-]+\[\d+\]|kernel): )?"  # syslog, journald, ts
    rf"|\[?{_CLOCK}\]? "
)

FRONT = rf"(?: *(?:{_ALWAYS_THE_SAME}|{_WITH_A_CLOCK}|{_GRADED}))*"
"""A pattern of any number of such prefixes, for RE2 and for `re`; behind `^`.

A clock at the beginning is one too, whoever printed it: the line's own words stand behind it.
"""
_LONGEST = 240
_FRONT = re.compile(FRONT.encode())
_GRADE = re.compile(_GRADED.encode())


def front(line: bytes) -> int:
    """How many bytes of a line, of at most its first 240, are such prefixes."""
    found = _FRONT.match(line, 0, _LONGEST)
    return found.end() if found else 0


def grade(line: bytes) -> int:
    """How many bytes of a line are a head in which a collector gives a level that is not the line's own."""
    found = _GRADE.match(line, 0, _LONGEST)
    return found.end() if found else 0
