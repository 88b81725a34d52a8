"""Waits in vain: one line reports a wait first-hand, others repeat it or follow from it. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate, consequence, speaker
from midwatch.agents.detect.diagnosis.relations.surroundings import Surroundings
from midwatch.agents.detect.line_order import FirstAndLast, earlier, in_order, maybe_earlier
from midwatch.streams.records import Hit
from midwatch.streams.records.error_types import family

OF_NVLS = re.compile(r"\bnvls\.cc:\d+ ")
"""NCCL's source file for NVLink SHARP."""
_WATCHDOG = ("torch_watchdog_timeout", "torch_dump_names_the_rank")
_TAKEN_DOWN = "torch_process_taken_down"
_WAITS = ("nccl_timeout", "distributed_timeout")
_INTERRUPTED = "python_keyboard_interrupt"
_SAME_END = 60  # lines between a report and what follows from it
_NOBODY = (None, None)
_OF_A_COLLECTIVE = re.compile(
    r"RuntimeError: .*(?:synchroni[sz]e|[Cc]ollective|communicator|abort|[Tt]imed? ?out|[Cc]onnection)"
)
_number: Callable[[Hit], int] = attrgetter("line.number")


def link_reports(around: Surroundings) -> dict[tuple[str, str], list[Hit]]:
    """By file, the lines that say how a collective failed."""
    found: dict[tuple[str, str], list[Hit]] = defaultdict(list)
    for hit in around.hits:
        echo = hit.rule == _TAKEN_DOWN or OF_NVLS.search(hit.line.text) is not None
        if not echo and family(hit.error_type) == "comms":
            found[hit.line.file].append(hit)
    return found


def taken_down_for_a_reason(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The watchdog took the process down because something "failed or timed out". What failed is said beside.

    The watchdog names the failure of the same work on its next lines, so after its notice.
    """
    if hit.rule != _TAKEN_DOWN:
        return None
    for each in around.once(link_reports).get(hit.line.file, ()):
        if abs(each.line.number - hit.line.number) <= _SAME_END and speaker(each) in (speaker(hit), _NOBODY):
            return RootCandidate(hit, NotRoot("watchdog says why", each.line))
    return None


def broken_by_the_watchdog(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The watchdog had ended the collective. What the collective then raised only repeats that."""
    if hit.rule == "models_differ":
        report = around.once(_first_report).before(hit.line)
        if report is None:
            return None
        return consequence(replace(hit, fallback=True), NotRoot("broken by the watchdog", report.line))
    waited = hit.role == "consequence" and hit.error_type in ("distributed_timeout", "communication")
    if not waited or hit.rule in _WATCHDOG or not (reports := around.once(_reports)):
        return None
    return RootCandidate(replace(hit, fallback=True), NotRoot("watchdog tells more", reports[0].line))


def _reports(around: Surroundings) -> list[Hit]:
    return [hit for hit in around.hits if hit.rule in _WATCHDOG]


def _first_report(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(around.once(_reports))


def raised_by_the_wait(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The general exception of a collective, right after the same rank's report that it waited in vain.

    The same words of another rank follow from the same wait: of thousands of ranks not every report is held.
    """
    words = _words_of_a_collective(hit)
    if not words:
        return None
    wait = around.once(_waits).just_above(hit, _SAME_END)
    if wait is not None:
        return consequence(hit, NotRoot("raised by the wait", wait.line))
    wait = around.once(_words_raised).get(words)
    if wait is None or not maybe_earlier(wait.line, hit.line):
        return None
    return consequence(hit, NotRoot("raised elsewhere", wait.line))


class _Waits:
    """The reports of expired waits, by file and rank."""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self._reports: dict[tuple[object, object], list[Hit]] = defaultdict(list)
        for hit in hits:
            if hit.role == "consequence" and not hit.fallback and hit.error_type in _WAITS:
                self._reports[hit.line.file, speaker(hit)].append(hit)
        for reports in self._reports.values():
            reports.sort(key=_number)

    def just_above(self, hit: Hit, lines: int) -> Hit | None:
        """The last report of the hit's file and rank, if it stands at most so many lines above the hit."""
        reports = self._reports.get((hit.line.file, speaker(hit)), [])
        at = bisect_left(reports, hit.line.number, key=_number)
        return reports[at - 1] if at and hit.line.number - reports[at - 1].line.number <= lines else None


def _waits(around: Surroundings) -> _Waits:
    return _Waits(around.hits)


def _words_of_a_collective(hit: Hit) -> str:
    """What a general exception says of a collective; "" if it is none."""
    if hit.role != "cause" or not hit.fallback or hit.error_type != "exception":
        return ""
    found = _OF_A_COLLECTIVE.search(hit.line.text)
    return hit.line.text[found.start() :] if found else ""


def _words_raised(around: Surroundings) -> dict[str, Hit]:
    """The words of exceptions that followed from a wait of their own rank, with the first such wait."""
    found: dict[str, Hit] = {}
    for hit in around.hits:
        words = _words_of_a_collective(hit)
        wait = around.once(_waits).just_above(hit, _SAME_END) if words else None
        if wait is not None and (words not in found or in_order(wait) < in_order(found[words])):
            found[words] = wait
    return found


def interrupted_before_others_waited(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """An interrupt in front of the watchdog's report: the others waited for that process in vain.

    So the interrupt tells as much as the wait does, and it stands first.
    """
    if hit.rule != _INTERRUPTED or "worker_of_pool" in hit.captures:
        return None
    waits = around.once(_last_waits).get(hit.line.file)
    if waits is None or not earlier(hit.line, waits.line):
        return None
    return RootCandidate(replace(hit, fallback=False))


def _last_waits(around: Surroundings) -> dict[tuple[str, str], Hit]:
    """The last report of a wait in each file."""
    reports = (hit for hit in around.hits if hit.role == "consequence" and hit.error_type in _WAITS)
    return {hit.line.file: hit for hit in sorted(reports, key=_number) if not hit.fallback}


def waited_beside_one_that_worked(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A pool of which one worker was interrupted at its work did not hang: the others waited for a task."""
    if hit.captures.get("worker_of_pool") != "waits" or hit.line.file not in around.once(_working_pools):
        return None
    return RootCandidate(replace(hit, error_type="user_interrupt", mode=None))


def _working_pools(around: Surroundings) -> set[tuple[str, str]]:
    stopped = (hit for hit in around.hits if family(hit.error_type) == "stopped")
    return {hit.line.file for hit in stopped if hit.captures.get("worker_of_pool") == "works"}
