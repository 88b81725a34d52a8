"""Notices: a parent, a launcher or a node only saw that something ended; another line tells why. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate, beside, consequence
from midwatch.agents.detect.diagnosis.condor_events import EVICTED, REMOVED, condor_job
from midwatch.agents.detect.diagnosis.relations.surroundings import Surroundings
from midwatch.agents.detect.line_order import FirstAndLast, earlier
from midwatch.streams.lines.times import printed_time
from midwatch.streams.records import Hit
from midwatch.streams.records.error_types import family

_NODE_FAILED = "slurm_node_failure_seen"
_SIGNALLED = ("torchrun_death_signal", "torchrun_passed_a_signal_on", "deepspeed_terminated")
"""Rules of a launcher that was asked to end. Schedulers ask before they tell why."""
_TERMINATED = ("15", "SIGTERM")
_EXIT_CODE = re.compile(r"\bexitcode *:? *(-?\d+)\b")
"""How torchrun tells of one worker's end."""
_BY_REQUEST = ("-15", "-2", "-1")
_SIGNAL_OF_A_REQUEST = re.compile(r"\bSignal \d+ \(SIG(?:TERM|INT|HUP)\) received by PID \d")
_NO_KIND = ("exception", "unknown", "")
_STRAY_WORDS = ("option_as_command", "letter_as_command")
_NO_REASON, _OF_A_STEP = "slurm_cancelled", "*** STEP "
_TAKEN_AWAY = ("cancelled", "preemption", "slurm_failure")
_SCHEDULERS = ("slurm", "scheduler", "kubernetes")
_SAME_END = 1800.0  # seconds from the signal, which some jobs want long before their limit, to the word
_KILLED_CHILD = "dataloader_killed"
_NOTICES = {
    _KILLED_CHILD: ("memory",),
    "dataloader_worker_crashed": ("code", "memory", "infra", "numerics"),
}
"""Rules of a parent that saw its child end, and the families in which the child's own line tells more."""


class _Tellers(NamedTuple):
    """The lines that tell more than a notice. `all`: by time."""

    all: list[Hit]
    first: FirstAndLast


def seen_by_the_parent(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A parent saw its child end. The child's own error, or the record of who killed it, tells why.

    The record of a memory killer may stand behind the notice, because another program writes it.
    """
    if hit.rule not in _NOTICES:
        return None
    tellers = around.once(_tellers)[hit.rule]
    teller = tellers.first.before(hit.line)
    if teller is None and hit.rule == _KILLED_CHILD:
        teller = next(iter(tellers.all), None)
    if teller is None:
        return None
    return consequence(replace(hit, fallback=True), NotRoot("parent's notice", teller.line))


def _tellers(around: Surroundings) -> Mapping[str, _Tellers]:
    found = {rule: [hit for hit in around.causes if _tells_of_a_child(hit, rule)] for rule in _NOTICES}
    return {rule: _Tellers(hits, FirstAndLast(hits)) for rule, hits in found.items()}


def _tells_of_a_child(hit: Hit, notice: str) -> bool:
    return hit.rule not in _NOTICES and family(hit.error_type) in _NOTICES[notice]


def signalled_by_the_scheduler(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """Something was asked to end, and the scheduler's word behind that tells why.

    A launcher saw the signal, or a step was cancelled without a reason. A time limit comes again, and a lost
    node does not: so such a line must not stand for either.
    """
    if hit.rule == _NO_REASON:
        word = around.once(_reasons_of_schedulers).behind(hit.line)
    elif hit.rule in _SIGNALLED and hit.captures.get("signal") in _TERMINATED:
        word = around.once(_words_of_schedulers).behind(hit.line)
    else:
        return None
    if word is None or _apart(hit, word) > _SAME_END:
        return None
    return consequence(hit, NotRoot("scheduler's signal", word.line))


def step_of_a_failed_process(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """`srun` ends the other tasks of a step when one has failed. It then cancels the step, not the job."""
    if hit.rule != _NO_REASON or _OF_A_STEP not in hit.line.text:
        return None
    failed = around.once(_taken_down).before(hit.line)
    return None if failed is None else consequence(hit, NotRoot("process failed", failed.line))


def _taken_down(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(hit for hit in around.hits if hit.rule == "torch_process_taken_down")


def _reasons_of_schedulers(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(
        hit for hit in around.causes if _is_word_of_a_scheduler(hit) and hit.rule != _NO_REASON
    )


def _words_of_schedulers(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(filter(_is_word_of_a_scheduler, around.causes))


def _is_word_of_a_scheduler(hit: Hit) -> bool:
    taken = hit.error_type in _TAKEN_AWAY and hit.subsystem in _SCHEDULERS
    return taken and hit.rule not in _SIGNALLED


def _apart(one: Hit, other: Hit) -> float:
    """The seconds between two lines by the clocks that they print; 0 where one prints none."""
    read_at = other.line.time + _SAME_END
    times = [printed_time(each.line.text.encode(), read_at=read_at) for each in (one, other)]
    return 0.0 if times[0] is None or times[1] is None else abs(times[1] - times[0])


def of_a_failing_node(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The scheduler names a failed node. Vague lines before that are what the node still printed."""
    if hit.role != "cause" or not hit.fallback or hit.rule == _NODE_FAILED:
        return None
    if _place(hit) not in around.once(_vague):
        return None
    node = around.once(_failed_nodes).behind(hit.line)
    return None if node is None else consequence(hit, NotRoot("node failed", node.line))


def _failed_nodes(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(hit for hit in around.hits if hit.rule == _NODE_FAILED)


def _vague(around: Surroundings) -> set[tuple[tuple[str, str], int]]:
    """The places of lines of which one rule knows no more than a device, a link or a signal."""
    return {_place(hit) for hit in around.causes if hit.fallback and _is_of_a_host(hit)}


def _is_of_a_host(hit: Hit) -> bool:
    return family(hit.error_type) in ("infra", "comms") or hit.error_type == "host_oom"


def _place(hit: Hit) -> tuple[tuple[str, str], int]:
    return (hit.line.file, hit.line.number)


def evicted_by_its_removal(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """HTCondor takes a running job off its slot because somebody removed it: the event stands above that.

    A job that it evicts for another one stays in the queue, and nobody removes it.
    """
    if hit.rule != EVICTED:
        return None
    removal = around.once(_removals).get(condor_job(hit))
    if removal is None or not earlier(hit.line, removal.line):
        return None
    return consequence(hit, NotRoot("removed", removal.line))


def _removals(around: Surroundings) -> Mapping[str, Hit]:
    """The last removal of each job."""
    return {job: hit for hit in around.causes if hit.rule == REMOVED and (job := condor_job(hit))}


def killed_by_the_agent(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The launcher's agent killed a worker that hung while it closed. No memory killer did."""
    if not hit.fallback or hit.error_type != "host_oom":
        return None
    for each in around.noted:
        if each.rule == "torchrun_killed_it" and earlier(each.line, hit.line):
            return consequence(
                replace(hit, error_type="exception"), NotRoot("killed by the agent", each.line)
            )
    return None


def ended_by_the_agent(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """torchrun's agent asks the other workers to end once one has failed. Their codes tell only of that.

    An agent that was itself asked to end saw no worker that failed in another way.
    """
    code = _EXIT_CODE.search(hit.line.text)
    asked = _SIGNAL_OF_A_REQUEST.search(hit.line.text) if code is None else code[1] in _BY_REQUEST
    failed = around.once(_failed_by_themselves).get(hit.line.file) if asked else None
    if failed is None:
        return None
    return beside(hit, NotRoot("ended by the agent", failed.line))


def _failed_by_themselves(around: Surroundings) -> Mapping[tuple[str, str], Hit]:
    """For each file the first worker whose exit code tells of no request."""
    found: dict[tuple[str, str], Hit] = {}
    for hit in around.hits:
        code = _EXIT_CODE.search(hit.line.text)
        if code is not None and code[1] not in _BY_REQUEST:
            found.setdefault(hit.line.file, hit)
    return found


def stray_behind_a_failure(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A shell took a part of a command for one of its own, behind the failure of what it had run."""
    if hit.rule not in _STRAY_WORDS:
        return None
    failed = around.once(_of_commands).before(hit.line)
    if failed is None or failed.line.file != hit.line.file:
        return None
    return beside(hit, NotRoot("stray word", failed.line))


def _of_commands(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(
        hit for hit in around.hits if hit.error_type not in _NO_KIND and hit.rule not in _STRAY_WORDS
    )
