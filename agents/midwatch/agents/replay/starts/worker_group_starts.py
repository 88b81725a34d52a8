"""Worker groups: where an agent of torchrun starts its workers anew in the same file. Pure.

Each restart is told by the agent itself, so no line need repeat and no step need come again. The workers that
the agent stops write on until it starts the next ones: a start begins with these words alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from midwatch.agents.replay.starts.start_words import letters

PIECES = (b"; will restart worker group", b"Starting worker group", b"restart_count=")
"""One of these stands in each line that tells of a restart."""

_AGAIN = re.compile(
    rb"\] (?:Worker group [A-Z]+\. \d+/\d+ attempts left|Detected \d+ new nodes from group_rank=\d+)"
    rb"; will restart worker group\s*\Z"
)
_COUNTED = re.compile(rb"\A(?:\W*\d+: |\[[\w-]+\]:?)?\s+restart_count=(\d{1,9})\s*\Z")
_STARTS = re.compile(rb"\] Starting worker group\s*\Z")
_COMPARED = 512
_ENDED = re.compile(rb"\] failed \(exitcode: -?\d+\) local_rank: \d+ [^\n]*\n")
_GIVEN_UP = b"ChildFailedError"
_HEAD, _BEHIND, _LETTERS = 60, 6, 12
"""Lines of a start in which stand what it prints once; lines behind the end; letters of such a line."""
# The last is what a rank that leaves prints. Behind the agent's word it is late.
_OF_THE_AGENT = re.compile(
    rb"\A(?:\s|\Z|Traceback \()|torch[./]distributed|\[default\]|\*{3}|process group has NOT been destroyed"
)
_DIGITS = re.compile(rb"\d+")


def behind_restarts(lines: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int]]:
    """Where workers are started anew, as (offset, number), of lines with their offset and number.

    The agent of each node says so. The first one of a restart counts.
    """
    again, restarts = False, 0
    for offset, number, line in lines:
        head = line[:_COMPARED]
        if again and _STARTS.search(head):
            again = False
            yield offset, number
        elif (counted := _COUNTED.search(head)) is not None:
            again = again or int(counted[1]) > restarts
            restarts = max(restarts, int(counted[1]))
        else:
            again = again or _AGAIN.search(head) is not None


def behind_a_silent_restart(text: bytes) -> tuple[int, int] | None:
    """Where workers write that an agent started anew without a word, as (offset, number); None if none do.

    At its usual level the agent tells of no restart. One that gives up raises an error of its own. So behind
    the end of a worker without that error, a line that only the file's head had shows the next start.
    """
    ends = list(_ENDED.finditer(text))
    if not ends or text.find(_GIVEN_UP, ends[-1].end()) >= 0:
        return None
    at = ends[-1].end()
    above = _forms(text[: ends[0].start()])
    once = {form for form, times in Counter(above).items() if times == 1}
    head = {form for form in above[:_HEAD] if form in once and letters([form]) >= _LETTERS}
    if head.isdisjoint(_forms(text[at:])[:_BEHIND]):
        return None
    return at, text.count(b"\n", 0, at) + 1


def _forms(text: bytes) -> list[bytes]:
    """The lines that a worker may have printed, without their numbers."""
    return [
        _DIGITS.sub(b"0", line[:_COMPARED].strip())
        for line in text.split(b"\n")
        if not _OF_THE_AGENT.search(line[:_COMPARED])
    ]
