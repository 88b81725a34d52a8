"""Monitors: lines of who looks at a server, measures the machine or calls tasks off. They show no work. Pure.

Such processes stand beside the job, and often outlive it. A training that prints how busy its cards are names
its step or a measure, too.
"""

from __future__ import annotations

import re

_OF_A_MONITOR = re.compile(
    r"\"(?:GET|HEAD|POST|PUT) /\S* HTTP/\d"  # a web server's record of a request
    r"|\A[^A-Za-z]*(?:[A-Za-z][^,]{0,60},[^A-Za-z]*)?\b\d+ %,.*\bMiB\b"  # nvidia-smi --format=csv
    r"|\b(?:[Rr]eceived a cancellation signal|[Ss]uccessfully cancell?ed input)\b|\ARunner terminated\.\s*\Z"
    # Modal's, of each input that an exception took along
    r"|(?i:\bheart ?beat\b"
    r"|\b(?:cpu|gpu|mem(?:ory)?)[ _]?(?:util\w*|usage|load|percent)?\W{0,3}\d+(?:\.\d+)? ?%)"
)

_OF_THE_WORK = re.compile(
    r"(?i)(?:\b|_)(?:loss|acc(?:uracy)?|epochs?|steps?|iter\w*|rewards?|batch(?:es)?|samples?|tokens?)(?:\b|_)"
)


def is_of_a_monitor(line: str) -> bool:
    """Whether the line tells of a request, a heartbeat, a task called off, or of how busy the machine is."""
    return _OF_A_MONITOR.search(line) is not None and _OF_THE_WORK.search(line) is None
