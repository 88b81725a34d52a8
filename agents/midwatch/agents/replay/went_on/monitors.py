"""Monitors: lines of who looks at a server, measures the machine or calls tasks off. They show no work. Pure.

Such processes stand beside the job, and often outlive it. A training that prints how busy its cards are names
its step or a measure, too. What a script asks of the machine behind its program is of this kind as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, islice

_OF_A_MONITOR = re.compile(
    r"\"(?:GET|HEAD|POST|PUT) /\S* HTTP/\d"  # a web server's record of a request
    r"|\A[^A-Za-z]*(?:[A-Za-z][^,]{0,60},[^A-Za-z]*)?\b\d+ %,.*\bMiB\b"  # nvidia-smi --format=csv
    r"|\b(?:[Rr]eceived a cancellation signal|[Ss]uccessfully cancell?ed input)\b|\ARunner terminated\.\s*\Z"
    # Modal's, of each input that an exception took along
    r"|(?i:\bheart ?beat\b"
    r"|\b(?:cpu|gpu|mem(?:ory)?)[ _]?(?:util\w*|usage|load|percent)?\W{0,3}\d+(?:\.\d+)? ?%)"
)

# What `df`, `conda list`, `ps`, `top`, `ls -l` and `du` print of each disk, package, process and file. Then
# kubectl's pods, Docker's containers, the commits of `git log`, and copies into a cloud.
_ROW = re.compile(
    r"\A\S+ +[\d.]+[KMGTP]?i? +[\d.]+[KMGTP]?i? +[\d.]+[KMGTP]?i? +\d{1,3}% +/\S*\s*\Z"
    r"|\A[\w.-]+ {2,}\d[\w.+!-]* {2,}\w*(?:_\d+|[0-9a-f]{7})\w*(?: {2,}\S+)?\s*\Z"
    r"|\A\S+ +\d+ +\d+(?:\.\d+)? +\d+(?:\.\d+)? +\d+ +\d+ +\S+ +[A-Z][\w<+]{0,4} +\S+ +\d+:\d\d(?::\d\d)? "
    r"|\A\S+ +\d+ +\d+ +\d+ +\S+ +\S+ +\d+:\d\d:\d\d "
    r"|\A *\d+ \S+ +(?:\d+|rt) +-?\d+ +[\d.]+\w? +[\d.]+\w? +[\d.]+\w? +[A-Z] +\d+(?:\.\d+)? +\d"
    r"|\A[dlcbps-](?:[r-][w-][xsStT-]){3}[.+@]? "
    r"|\A\d+(?:\.\d+)?[KMGTP]?\t[./~]\S*\s*\Z"
    r"|\A[a-z0-9.-]+ +\d+/\d+ +[A-Z]\w+ +\d+ .*\d[smhd]\s*\Z|\A[0-9a-f]{12} +\S+ +\""
    r"|\Acommit [0-9a-f]{40}\b|\A(?:Author|Date|Merge): +\S"
    r"|\A(?:Copying|upload:|copy:|download:) (?:file|gs|s3)?[:/.]\S+|\AOperation completed over \d+ objects"
)
# Columns of names and values, as `lscpu` and `nvidia-smi -q` print them. A measure may stand so, too.
_VALUE = re.compile(r"\A\s*[A-Z][^:\n]{1,48}: {3,}\S")
_MEASURE = re.compile(r"\d\.\d")
_LONG = 6  # lines of such a row: a program shows fewer settings at once

_OF_THE_WORK = re.compile(
    r"(?i)(?:\b|_)(?:loss|acc(?:uracy)?|epochs?|steps?|iter\w*|rewards?|batch(?:es)?|samples?|tokens?)(?:\b|_)"
)


def is_of_a_monitor(line: str) -> bool:
    """Whether the line tells of a request, a heartbeat, a task called off, or of what the machine holds."""
    if _ROW.match(line) is not None:
        return True
    return _OF_A_MONITOR.search(line) is not None and _OF_THE_WORK.search(line) is None


def without_lists(lines: Iterable[str]) -> Iterator[str]:
    """The lines, without long rows of names and values that measure nothing."""
    for are_values, run in groupby(lines, _is_a_value):
        if not are_values:
            yield from run
        elif len(few := list(islice(run, _LONG))) < _LONG:
            yield from few


def _is_a_value(line: str) -> bool:
    return _VALUE.match(line) is not None and _MEASURE.search(line) is None and not _OF_THE_WORK.search(line)
