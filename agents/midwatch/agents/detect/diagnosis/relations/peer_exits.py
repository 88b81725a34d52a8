"""Peer exits: failures that follow from the end of another process are no causes. Pure.

A check of native code is no cause if its process was ending already, or if its peer had gone. A broken link
or an expired wait is no cause after the end of another process.

The text of a failed check does not show whether its process was ending (a closed socket, an empty table) or
at work. An earlier request to end shows it. So does a second rule that knows from the same line of the peer's
exit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate, beside, consequence
from midwatch.agents.detect.line_order import FirstAndLast, in_order
from midwatch.streams.records import Hit
from midwatch.streams.records.error_types import family

_CHECK = re.compile(
    r"\bCheck fail(?:ed|ure)\b|\bF\d{4} \d\d:\d\d:\d\d|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ C \d+ \d+\]"
)
_FRONT = re.compile(r"\A[^\w(]{0,12}(\([^()]{0,80}\))")  # (pid=raylet, ip=10.0.0.9)
_OF_SERVICES = ("hub_away", "node_request_unanswered", "redis_loading", "wandb_never_started")
"""Rules of services that did not answer. No process of the job is at their other end."""
_SHELL = "shell_terminated"
_SCHEDULERS = ("slurm", "scheduler", "kubernetes")
_OF_A_BACKGROUND_JOB = re.compile(r": line \d+: +\d+ ")  # a script may end its own helper
_NUMBER = re.compile(r"\b[IWEF]\d{4} [\d:.]+ +(\d+)|\[\d{4}-\d\d-\d\d [\d:,.]+ [IWECF] (\d+) \d+\]")


WAITED = (
    "nccl_timeout",
    "distributed_timeout",
    "watchdog_timeout",
    "desync",
    "rendezvous",
    "hang",
    "deadlock",
    "straggler",
)


def after_peer_exits(candidates: Sequence[RootCandidate], noted: Sequence[Hit]) -> list[RootCandidate]:
    """The candidates, with each check, link and wait after a peer's exit as a consequence.

    A request to end that explains a check joins them. `noted`: context lines, requests to end among them.
    """
    candidates = _after_an_end(candidates)
    hits = [candidate.hit for candidate in candidates if candidate.hit.role != "context"]
    requests = _Requests([hit for hit in (*hits, *noted) if family(hit.error_type) == "stopped"])
    explained = {_place(hit): hit for hit in hits if hit.role == "consequence" and not hit.fallback}
    kept = {_key(hit) for hit in hits}
    judged: list[RootCandidate] = []
    for candidate in candidates:
        hit = candidate.hit
        if hit.role != "cause" or hit.fallback or _CHECK.search(hit.line.text) is None:
            judged.append(candidate)
            continue
        request = requests.of_process_before(hit)
        if request is not None and _key(request) not in kept:
            kept.add(_key(request))
            judged.append(RootCandidate(replace(request, role="consequence", transient=None)))
        if _place(hit) in explained:
            judged.append(beside(hit, NotRoot("news of a peer", explained[_place(hit)].line)))
        elif request is not None:
            judged.append(consequence(hit, NotRoot("asked to end", request.line)))
        else:
            judged.append(candidate)
    return judged


def _after_an_end(candidates: Sequence[RootCandidate]) -> list[RootCandidate]:
    """The candidates, with each broken link and each expired wait as a consequence if a process had ended.

    The peers of that process lose the link to it, or wait for it. A link that breaks by itself precedes the
    exceptions that follow from it. A memory killer's record is written at the end, so it may stand below.
    What a shell says of its launcher's SIGTERM is the cause of what the ranks wait for below: nothing in the
    job sends one.
    """
    candidates = _with_terminated_launchers(candidates)
    raised = FirstAndLast(candidate.hit for candidate in candidates if _ends_its_process(candidate.hit))
    killed = next((each.hit for each in candidates if _records_a_memory_kill(each)), None)
    judged: list[RootCandidate] = []
    for candidate in candidates:
        end = raised.before(candidate.hit.line) or killed if _is_about_peers(candidate.hit) else None
        reason = None if end is None else NotRoot("after an end", end.line)
        judged.append(candidate if reason is None else consequence(candidate.hit, reason))
    return judged


def _with_terminated_launchers(candidates: Sequence[RootCandidate]) -> list[RootCandidate]:
    """The candidates, with a shell's word that its launcher was terminated as the cause of the waits below.

    It is none where something failed above it, or where anybody else says why the job ended. Nothing shows
    that a restart is wanted.
    """
    if any(map(_says_why, candidates)):
        return list(candidates)
    waits = FirstAndLast(each.hit for each in candidates if each.hit.error_type in WAITED)
    above = FirstAndLast(each.hit for each in candidates if not (each.set_aside or each.hit.rule == _SHELL))
    return [
        RootCandidate(replace(each.hit, role="cause", transient=None))
        if _is_terminated(each) and waits.behind(each.hit.line) and not above.before(each.hit.line)
        else each
        for each in candidates
    ]


def _says_why(candidate: RootCandidate) -> bool:
    """Whether it is a scheduler's word, or a cause that is no broken link and no wait."""
    hit = candidate.hit
    if candidate.set_aside or hit.rule == _SHELL:
        return False
    return hit.subsystem in _SCHEDULERS or (hit.role == "cause" and family(hit.error_type) != "comms")


def _is_terminated(candidate: RootCandidate) -> bool:
    hit = candidate.hit
    return hit.rule == _SHELL and not candidate.set_aside and not _OF_A_BACKGROUND_JOB.search(hit.line.text)


def _ends_its_process(hit: Hit) -> bool:
    """Whether the line's own process ends by this failure. Broken numbers, for example, end none."""
    own = family(hit.error_type) in ("code", "memory") or hit.rule == _SHELL
    return hit.role == "cause" and hit.fallback and own


def _records_a_memory_kill(candidate: RootCandidate) -> bool:
    """Whether the kernel, the node or the scheduler says that it killed a process for its memory."""
    hit = candidate.hit
    return (
        hit.role == "cause" and not hit.fallback and hit.error_type == "host_oom" and not candidate.set_aside
    )


def _is_about_peers(hit: Hit) -> bool:
    if hit.role != "cause" or hit.fallback:
        return False
    broken = hit.transient is True and family(hit.error_type) == "comms" and hit.rule not in _OF_SERVICES
    return broken or hit.error_type in WAITED


def _place(hit: Hit) -> tuple[tuple[str, str], int]:
    return (hit.line.file, hit.line.number)


def _key(hit: Hit) -> tuple[tuple[str, str], int, str]:
    return (hit.line.file, hit.line.number, hit.rule)


class _Requests:
    """The requests to end, by process. A line without a name may be of any process, so it is of none."""

    def __init__(self, requests: Sequence[Hit]) -> None:
        found: dict[tuple[str, str, str], list[Hit]] = defaultdict(list)
        for request in requests:
            front, number = _process(request)
            found[request.line.node, front, number].append(request)
            if front and number:
                found[request.line.node, front, _ANY].append(request)
        self._of = {process: FirstAndLast(its) for process, its in found.items()}

    def of_process_before(self, hit: Hit) -> Hit | None:
        """A request that certainly stands before the line and is of the same process."""
        front, number = _process(hit)
        numbers = (number, "") if number and front else (number,) if number else ("", _ANY) if front else ()
        found = (self._of.get((hit.line.node, front, name)) for name in numbers)
        before = (each.before(hit.line) for each in found if each is not None)
        return min((each for each in before if each is not None), key=in_order, default=None)


_ANY = "any"


def _process(hit: Hit) -> tuple[str, str]:
    """The process's name in front of the line, and the process's number in a logger's stamp."""
    front, number = _FRONT.match(hit.line.text), _NUMBER.search(hit.line.text)
    return (front[1] if front else "", (number[1] or number[2]) if number else "")
