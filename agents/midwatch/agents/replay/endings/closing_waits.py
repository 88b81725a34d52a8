"""The closing waits: the last lines of a saved log say that a process waits for ranks or processes. Pure.

Ranks that say who is missing, again and again, have waited in vain. Where rank 0 only said that it joins, the
log of a hang looks like that of a job that has just started. So the reason says so, and a person decides.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from midwatch.agents.replay.endings.cut_tracebacks import Numbered

WAITS = "the log ends in waiting for ranks or processes that did not come"
JOINS = (
    "the log ends where rank 0 waits for the others to join: it hangs there, or the job had just started "
    "when this was saved"
)

_LEAST_WAITS = 2  # torch and TensorFlow say so every ten seconds, LightGBM sooner
_TOGETHER = 16
"""Lines within which the ranks of a node say that they join."""

_WAITS = re.compile(
    rb"\bWaiting in store based barrier to initialize process group for rank: \d+, key: \S+ "
    rb"\(world_size=(\d{1,9}), worker_count=(\d{1,9}),"
    rb"|\[LightGBM\] \[Warning\] Connecting to rank \d+ failed, waiting for \d+ milliseconds"
    rb"|\bNCCL INFO socket\w+: connect returned [\w ]+, retrying \(\d+/\d+\)"
    rb"|\bLoadServer \S+ Failed at \d+ times error_code \d+"  # OneFlow
    rb"|\bCreateSession still waiting for response from worker: /job:\w+/"
)
# Behind steps it may be a queue of work that is empty for a while.
_WAITS_FIRST = re.compile(
    rb"(?i)\bwaiting (?:for|on) (?:[\w/-]+ ){0,4}"
    rb"(?:workers?|ranks?|peers?|master|chief|coordinator|parameter servers?)\b"
)
# What a rank prints right before it joins. Ranks beside 0 often print nothing more for the rest of the run.
_JOINS = re.compile(
    rb"\b[Ii]nitializing (?:ddp|distributed): GLOBAL_RANK: (?P<lightning>\d+), MEMBER: \d+/(?!1\s*\Z)\d+\s*\Z"
    rb"|\bdistributed init \(rank (?P<torchvision>\d+)(?:/\d+|, world (?!1\))\d+)?\): (?:env|tcp|file)://\S*\s*\Z"
    rb"|> initializing torch distributed \.\.\.\s*\Z"  # Megatron
    rb"|\] Initializing TorchBackend in DeepSpeed with backend \w+\s*\Z"
    rb"|\] Starting JAX distributed service on \S+\s*\Z"
)
# The service that TensorFlow and JAX start in task 0 counts the tasks that are still missing.
_MISSING = re.compile(rb"\bcoordination_service\.\w+:\d+\] Waiting for (\d{1,9})/\d{1,9} tasks to connect")
_COORDINATES = re.compile(
    rb"\bcoordination_service(?:_agent)?\.\w+:\d+\] |/job:\w+/replica:\d+/task:\d+\s*\Z"
)


class ClosingWait(NamedTuple):
    """The line that tells most of the wait, what it is called, and `WAITS` or `JOINS`."""

    number: int
    error_type: str
    how: str


def closing_wait(lines: Numbered, *, stepped: bool) -> ClosingWait | None:
    """The wait in which the last lines of a log end. `stepped`: whether a line of the log printed a step."""
    waits = _waits_for_ranks(lines, stepped=stepped)
    if waits is not None:
        return ClosingWait(waits, "rendezvous", WAITS)
    if stepped or not lines:
        return None
    if (missing := _missing_tasks(lines)) is not None:
        return ClosingWait(missing, "rendezvous", WAITS)
    if _joining(lines[-1][1]) is None:
        return None
    if not any(_joining(line) == 0 for _, line in lines[-_TOGETHER:]):
        return None
    return ClosingWait(lines[-1][0], "hang", JOINS)


def _waits_for_ranks(lines: Numbered, *, stepped: bool) -> int | None:
    """The number of the first of the last lines, if all of them say that ranks or processes are missing."""
    first, waits = None, 0
    for number, line in reversed(lines):
        found = _WAITS.search(line)
        if found is None and (stepped or _WAITS_FIRST.search(line) is None):
            break
        if found is not None and found[1] and int(found[2]) >= int(found[1]):
            break
        first, waits = number, waits + 1
    return first if waits >= _LEAST_WAITS else None


def _missing_tasks(lines: Numbered) -> int | None:
    """The number of the line in which the coordination service, which has the last word, misses tasks."""
    if _COORDINATES.search(lines[-1][1]) is None:
        return None
    counts = (
        (number, found) for number, line in reversed(lines[-_TOGETHER:]) if (found := _MISSING.search(line))
    )
    number, last = next(counts, (0, None))
    return number if last is not None and int(last[1]) else None


def _joining(line: bytes) -> int | None:
    """The rank that joins; None if the line tells of no such thing. Where it names none, rank 0 prints it."""
    found = _JOINS.search(line)
    if found is None:
        return None
    rank = found["lightning"] or found["torchvision"]
    return int(rank) if rank else 0
