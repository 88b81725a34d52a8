"""Peer exits: failures that follow from the end of another process are no causes. Pure.

A check of native code is no cause if its process was ending already, or if its peer had gone. A broken link
or an expired wait is no cause after the end of another process.

The text of a failed check does not show whether its process was ending (a closed socket, an empty table) or
at work. An earlier request to end shows it. So does a second rule that knows from the same line of the peer's
exit.
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
    """The hits, with each check, link and wait after a peer's exit as a consequence of unknown transience.

    A request to end that explains a check joins the hits. `noted`: context lines, requests to end among them.
    """
    hits = _after_an_end(hits)
    requests = [hit for hit in (*hits, *noted) if family(hit.error_type) == "stopped"]
    explained = {_place(hit) for hit in hits if hit.role == "consequence" and not hit.fallback}
    judged: list[Hit] = []
    before: list[Hit] = []
    for hit in hits:
        if hit.role != "cause" or hit.fallback or _CHECK.search(hit.line.text) is None:
            judged.append(hit)
            continue
        request = next(
            (each for each in requests if _same_process(each, hit) and earlier(each.line, hit.line)), None
        )
        if request is not None and request not in before and request not in hits:
            before.append(request)
        if _place(hit) not in explained:
            judged.append(hit if request is None else replace(hit, role="consequence", transient=None))
    return [*judged, *(replace(hit, role="consequence", transient=None) for hit in before)]


def _after_an_end(hits: Sequence[Hit]) -> list[Hit]:
    """The hits, with each broken link and each expired wait as a consequence if a process had failed before.

    The peers of that process lose the link to it, or wait for it. A link that breaks by itself precedes the
    exceptions that follow from it.
    """
    raised = [hit for hit in hits if hit.role == "cause" and hit.fallback and _ends_its_process(hit)]
    return [
        replace(hit, role="consequence", transient=None)
        if _is_about_peers(hit) and any(earlier(each.line, hit.line) for each in raised)
        else hit
        for hit in hits
    ]


def _ends_its_process(hit: Hit) -> bool:
    """Whether the line's own process ends by this failure. Broken numbers, for example, end none."""
    return family(hit.error_type) in ("code", "memory")


def _is_about_peers(hit: Hit) -> bool:
    if hit.role != "cause" or hit.fallback:
        return False
    broken = hit.transient is True and family(hit.error_type) == "comms"
    return broken or hit.error_type in _WAITED


def _place(hit: Hit) -> tuple[tuple[str, str], int]:
    return (hit.line.file, hit.line.number)


def _same_process(hit: Hit, other: Hit) -> bool:
    """Whether both lines name the same process. A line without a name may be of any process."""
    if hit.line.node != other.line.node:
        return False
    (front, number), (second, digits) = _process(hit), _process(other)
    if number and digits:
        return number == digits and front == second
    return bool(front) and front == second


def _process(hit: Hit) -> tuple[str, str]:
    """The process's name in front of the line, and the process's number in a logger's stamp."""
    front, number = _FRONT.match(hit.line.text), _NUMBER.search(hit.line.text)
    return (front[1] if front else "", (number[1] or number[2]) if number else "")
