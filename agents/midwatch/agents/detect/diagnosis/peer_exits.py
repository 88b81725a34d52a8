"""Who left first: a check of native code that failed in a process that was already leaving, or whose peer had
left, is no cause; nor is a link that broke, or a wait in vain, behind an end. Pure.

Such a check fails in the race of an end (a socket is gone, a table is empty) as well as in the midst of work,
and its words alone do not tell which. Who had been asked to end before does, and so does a second rule that
knows from the same line that the peer was gone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.detect.line_order import earlier
from midwatch.streams.records import Hit
from midwatch.streams.records.error_types import family

_CHECK = re.compile(
    r"\bCheck fail(?:ed|ure)\b|\bF\d{4} \d\d:\d\d:\d\d|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ C \d+ \d+\]"
)
_FRONT = re.compile(r"\A[^\w(]{0,12}(\([^()]{0,80}\))")  # (pid=raylet, ip=10.0.0.9)
_NUMBER = re.compile(r"\b[IWEF]\d{4} [\d:.]+ +(\d+)|\[\d{4}-\d\d-\d\d [\d:,.]+ [IWECF] (\d+) \d+\]")


_WAITED = (
    "nccl_timeout",
    "distributed_timeout",
    "watchdog_timeout",
    "desync",
    "rendezvous",
    "hang",
    "deadlock",
    "straggler",
)


def after_peer_exits(hits: Sequence[Hit], noted: Sequence[Hit]) -> list[Hit]:
    """The hits with each such check, link and wait as a consequence of which nobody knows whether it passes;
    the request to end is then one of them. `noted`: lines that only told of something, requests too."""
    hits = _behind_an_end(hits)
    asked = [hit for hit in (*hits, *noted) if family(hit.error_type) == "stopped"]
    told = {_place(hit) for hit in hits if hit.role == "consequence" and not hit.fallback}
    judged: list[Hit] = []
    before: list[Hit] = []
    for hit in hits:
        if hit.role != "cause" or hit.fallback or _CHECK.search(hit.line.text) is None:
            judged.append(hit)
            continue
        request = next(
            (each for each in asked if _same_process(each, hit) and earlier(each.line, hit.line)), None
        )
        if request is not None and request not in before and request not in hits:
            before.append(request)
        if _place(hit) not in told:
            judged.append(hit if request is None else replace(hit, role="consequence", transient=None))
    return [*judged, *(replace(hit, role="consequence", transient=None) for hit in before)]


def _behind_an_end(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with each broken link, and each wait in vain, as a consequence where a process had ended of
    itself before: its peers lose the way to it, or wait for it. One that came by itself stands before the
    exceptions that follow."""
    raised = [hit for hit in hits if hit.role == "cause" and hit.fallback and _is_own(hit)]
    return [
        replace(hit, role="consequence", transient=None)
        if _is_about_peers(hit) and any(earlier(each.line, hit.line) for each in raised)
        else hit
        for hit in hits
    ]


def _is_own(hit: Hit) -> bool:
    """Whether a process that ended tells of itself; broken numbers, for one, end none."""
    return family(hit.error_type) in ("code", "memory")


def _is_about_peers(hit: Hit) -> bool:
    if hit.role != "cause" or hit.fallback:
        return False
    broken = hit.transient is True and family(hit.error_type) == "comms"
    return broken or hit.error_type in _WAITED


def _place(hit: Hit) -> tuple[tuple[str, str], int]:
    return (hit.line.file, hit.line.number)


def _same_process(one: Hit, other: Hit) -> bool:
    """Whether both lines name the same process; a line that names none may be anybody's."""
    if one.line.node != other.line.node:
        return False
    (front, number), (second, digits) = _process(one), _process(other)
    if number and digits:
        return number == digits and front == second
    return bool(front) and front == second


def _process(hit: Hit) -> tuple[str, str]:
    """What stands in front of the line for its process, and the process's number in a logger's stamp."""
    front, number = _FRONT.match(hit.line.text), _NUMBER.search(hit.line.text)
    return (front[1] if front else "", (number[1] or number[2]) if number else "")
