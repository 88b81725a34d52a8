"""Script starts: a file in which one script ended of an exception, and ended so again later.

An exception that leaves the script's own module ends its process. So a later one of the same script, with
other lines between them, is another start's. Ranks and workers of one start end one after the other, too: a
file that speaks of such is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from midwatch.agents.replay.log_files import LogFile, text_of

_BETWEEN = 3  # lines that the next start has printed before it ended
_HEADLINE = b"Traceback (most recent call last):\n"
_FIRST_FRAME = re.compile(rb'  File "([^"\n]+)", line \d+, in ([^\n]+)\n')
_MODULE = b"<module>"
_CHAINED = re.compile(rb"(?:During handling of the above|The above exception was the direct cause)")
_OF_MANY = re.compile(
    rb"(?i)\branks?\b|local_rank|world_size|torchrun|torch[./]distributed|elastic|\bnccl|\bgloo\b|mpi(?:run|exec)"
    rb"|\bsrun\b|deepspeed|horovod|\bpid=|SpawnProcess|\bprocess \d|multiprocessing|\bray\b"
)


class RaisedEnd(NamedTuple):
    """Where a traceback at the margin ends. `offset`, `number`: of the first line behind its message.

    `script`, `function`: those of its first frame. Only a module's own frame shows that a script has ended.
    """

    script: bytes
    function: bytes
    begin: int
    offset: int
    number: int


def behind_ended_scripts(file: LogFile) -> Iterator[tuple[int, int]]:
    """The places (offset, number) behind each end of a script that ends so again. Raises OSError."""
    text = text_of(file)
    if text.count(b", in <module>\n") < 2 or speaks_of_many(text):
        return
    for one, other in pairwise(each for each in raised_ends(text) if each.function == _MODULE):
        between = text[one.offset : other.begin]
        if one.script == other.script and between.count(b"\n") >= _BETWEEN and between.strip():
            yield one.offset, one.number


def speaks_of_many(text: bytes) -> bool:
    """Whether the text speaks of ranks, workers or launchers: several processes may have written it."""
    return _OF_MANY.search(text) is not None


def raised_ends(text: bytes) -> Iterator[RaisedEnd]:
    """The ends of the plain tracebacks at the margin, a chain's last one only."""
    at = 0
    while (begin := text.find(_HEADLINE, at)) >= 0:
        at = begin + len(_HEADLINE)
        frame = _FIRST_FRAME.match(text, at)
        if frame is None or (begin and text[begin - 1 : begin] != b"\n"):
            continue
        at = _behind_the_message(text, frame.end())
        if _CHAINED.match(text[at : at + 80].lstrip()) is None:
            yield RaisedEnd(frame[1], frame[2], begin, at, text.count(b"\n", 0, at) + 1)


def _behind_the_message(text: bytes, at: int) -> int:
    """Where the line behind the traceback's last one begins. Frames are indented, the message is not."""
    while at < len(text) and text[at : at + 1] in (b" ", b"\t"):
        at = text.find(b"\n", at) + 1 or len(text)
    return text.find(b"\n", at) + 1 or len(text)
