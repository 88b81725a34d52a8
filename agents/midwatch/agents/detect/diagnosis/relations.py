"""Relations: what one line of an attempt makes of another. A line that only follows is no root. Pure.

Each relation names a mechanism. It looks at one hit beside all lines and gives the candidate that it makes
of the hit, with the reason, or None. The order among the candidates is in `root_line`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate, beside, consequence, speaker
from midwatch.agents.detect.diagnosis.refusals import Refusals
from midwatch.agents.detect.line_order import FirstAndLast, earlier, in_order, maybe_earlier
from midwatch.streams.records import Hit
from midwatch.streams.records.error_types import family


class Surroundings:
    """The lines beside a candidate. `hits`: causes and consequences. `noted`: context since the last step.

    `over`: nothing but these lines speaks of a failure, and no work is known to be left.
    What several relations ask of all lines is worked out once: thousands of ranks may speak at an end.
    """

    def __init__(self, hits: Sequence[Hit], noted: Sequence[Hit], *, over: bool) -> None:
        self.hits, self.noted, self.over = hits, noted, over
        self.reports = [hit for hit in hits if hit.rule in _WATCHDOG]
        self.first_report = FirstAndLast(self.reports)
        self.link_reports = _link_reports(hits)
        self.waits = _Waits(hits)
        self.raised = _words_raised(hits, self.waits)
        causes = [hit for hit in hits if hit.role == "cause"]
        self.tellers = {rule: [h for h in causes if _tells_of_a_child(h, rule)] for rule in _NOTICES}
        self.first_teller = {rule: FirstAndLast(tellers) for rule, tellers in self.tellers.items()}
        self.failed_nodes = FirstAndLast(hit for hit in hits if hit.rule == _NODE_FAILED)
        stopped = [hit for hit in hits if family(hit.error_type) == "stopped"]
        self.taken_away = FirstAndLast(hit for hit in stopped if hit.rule == _PREEMPTED)
        self.vague = {_place(hit) for hit in causes if hit.fallback and _is_of_a_host(hit)}
        self.working_pools = {h.line.file for h in stopped if h.captures.get("worker_of_pool") == "works"}
        self.refusals = Refusals(causes)
        self.exceptions = FirstAndLast(hit for hit in causes if _PYTHONS.search(hit.line.text) is not None)
        self.only_links = all(hit.role == "consequence" and family(hit.error_type) == "comms" for hit in hits)


def _link_reports(hits: Sequence[Hit]) -> dict[tuple[str, str], list[Hit]]:
    """By file, the lines that say how a collective failed."""
    found: dict[tuple[str, str], list[Hit]] = defaultdict(list)
    for hit in hits:
        echo = hit.rule == _TAKEN_DOWN or _NVLS.search(hit.line.text) is not None
        if not echo and family(hit.error_type) == "comms":
            found[hit.line.file].append(hit)
    return found


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


Relation = Callable[[Hit, Surroundings], "RootCandidate | None"]

_WATCHDOG = ("torch_watchdog_timeout", "torch_dump_names_the_rank")
_NODE_FAILED = "slurm_node_failure_seen"
_PREEMPTED = "slurm_preempted"
_IN_A_THREAD = "in_a_thread"
"""The capture of an exception that ended a thread beside the main one."""
_WAITS = ("nccl_timeout", "distributed_timeout")
_number: Callable[[Hit], int] = attrgetter("line.number")


def _place(hit: Hit) -> tuple[tuple[str, str], int]:
    return (hit.line.file, hit.line.number)


def _is_of_a_host(hit: Hit) -> bool:
    """Whether a device, a link or a signal is all that the line knows of."""
    return family(hit.error_type) in ("infra", "comms") or hit.error_type == "host_oom"


def _went_another_way(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A probe failed, and the program took its fallback: the failure ended nothing."""
    way = _FALLBACKS.get(hit.rule)
    if way is None:
        return None
    for each in around.noted:
        if each.rule == way and earlier(hit.line, each.line):
            return beside(hit, NotRoot("went another way", each.line))
    return None


_FALLBACKS = {"ofi_plugin_setup_failed": "nccl_tcp_fallback"}


def _port_left_alone(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The store found its port taken. The program caught that, told it quietly, and went on without peers."""
    if hit.rule != _PORT_TAKEN:
        return None
    for each in around.noted:
        told = each.rule == _PORT_TAKEN and each.aside == "quiet" and each.line.file == hit.line.file
        if told and earlier(hit.line, each.line):
            return beside(hit, NotRoot("went another way", each.line))
    return None


_PORT_TAKEN = "store_port_in_use"


def _transport_given_up(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """NCCL tried NVLink SHARP and took another way. If it could not go on, its general error follows."""
    if hit.rule != "nccl_device_call_failed" or _NVLS.search(hit.line.text) is None:
        return None
    if any(maybe_earlier(hit.line, each.line) for each in around.link_reports.get(hit.line.file, ())):
        return None
    return beside(hit, NotRoot("transport given up"))


_NVLS = re.compile(r"\bnvls\.cc:\d+ ")


def _only_torn_down(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A link broke while the launchers closed their meeting, and nothing else failed: the run was over.

    A store whose node died looks alike. Then the job's end is no quiet one. A launcher that dies of the
    broken link closes first and prints its exception behind that.
    """
    if not around.over or not around.only_links:
        return None
    for each in around.noted:
        died = earlier(each.line, hit.line) and _RAISED.search(hit.line.text) is not None
        if each.rule == "rendezvous_not_closed" and not died:
            return beside(hit, NotRoot("only torn down", each.line))
    return None


_RAISED = re.compile(
    r"^(?:\[[\w:]+\]:? *)?(?:[a-z]\w*\.)*(?:Runtime|Dist\w+|Rendezvous\w+|Connection\w*|Timeout)Error\b"
)


_TAKEN_DOWN = "torch_process_taken_down"
_SAME_END = 60  # lines between a report and what follows from it


def _taken_down_for_a_reason(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The watchdog took the process down because something "failed or timed out". What failed is said beside.

    The watchdog names the failure of the same work on its next lines, so after its notice.
    """
    if hit.rule != _TAKEN_DOWN:
        return None
    for each in around.link_reports.get(hit.line.file, ()):
        if abs(each.line.number - hit.line.number) <= _SAME_END and speaker(each) in (speaker(hit), _NOBODY):
            return RootCandidate(hit, NotRoot("watchdog says why", each.line), set_aside=True)
    return None


_NOBODY = (None, None)


def _broken_by_the_watchdog(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The watchdog had ended the collective. What the collective then raised only repeats that."""
    if hit.rule == "models_differ":
        report = around.first_report.before(hit.line)
        if report is None:
            return None
        return consequence(replace(hit, fallback=True), NotRoot("broken by the watchdog", report.line))
    waited = hit.role == "consequence" and hit.error_type in ("distributed_timeout", "communication")
    if not waited or not around.reports or hit.rule in _WATCHDOG:
        return None
    return RootCandidate(replace(hit, fallback=True), NotRoot("watchdog tells more", around.reports[0].line))


_OF_A_COLLECTIVE = re.compile(
    r"RuntimeError: .*(?:synchroni[sz]e|[Cc]ollective|communicator|abort|[Tt]imed? ?out|[Cc]onnection)"
)


def _raised_by_the_wait(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The general exception of a collective, right after the same rank's report that it waited in vain.

    The same words of another rank follow from the same wait: of thousands of ranks not every report is held.
    """
    words = _words_of_a_collective(hit)
    if not words:
        return None
    wait = around.waits.just_above(hit, _SAME_END)
    if wait is not None:
        return consequence(hit, NotRoot("raised by the wait", wait.line))
    wait = around.raised.get(words)
    if wait is None or not maybe_earlier(wait.line, hit.line):
        return None
    return consequence(hit, NotRoot("raised elsewhere", wait.line))


def _words_of_a_collective(hit: Hit) -> str:
    """What a general exception says of a collective; "" if it is none."""
    if hit.role != "cause" or not hit.fallback or hit.error_type != "exception":
        return ""
    found = _OF_A_COLLECTIVE.search(hit.line.text)
    return hit.line.text[found.start() :] if found else ""


def _words_raised(hits: Sequence[Hit], waits: _Waits) -> dict[str, Hit]:
    """The words of exceptions that followed from a wait of their own rank, with the first such wait."""
    found: dict[str, Hit] = {}
    for hit in hits:
        words = _words_of_a_collective(hit)
        wait = waits.just_above(hit, _SAME_END) if words else None
        if wait is not None and (words not in found or in_order(wait) < in_order(found[words])):
            found[words] = wait
    return found


_NOTICES = {
    "dataloader_killed": ("memory",),
    "dataloader_worker_crashed": ("code", "memory", "infra", "numerics"),
}
"""Rules of a parent that saw its child end, and the families in which the child's own line tells more."""


def _tells_of_a_child(hit: Hit, notice: str) -> bool:
    return hit.rule not in _NOTICES and family(hit.error_type) in _NOTICES[notice]


def _seen_by_the_parent(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A parent saw its child end. The child's own error, or the record of who killed it, tells why.

    The record of a memory killer may stand behind the notice, because another program writes it.
    """
    if hit.rule not in _NOTICES:
        return None
    teller = around.first_teller[hit.rule].before(hit.line)
    if teller is None and hit.rule == "dataloader_killed":
        teller = next(iter(around.tellers[hit.rule]), None)
    if teller is None:
        return None
    return consequence(replace(hit, fallback=True), NotRoot("parent's notice", teller.line))


def _of_a_failing_node(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The scheduler names a failed node. Vague lines before that are what the node still printed."""
    if hit.role != "cause" or not hit.fallback or hit.rule == _NODE_FAILED or _place(hit) not in around.vague:
        return None
    node = around.failed_nodes.behind(hit.line)
    return None if node is None else consequence(hit, NotRoot("node failed", node.line))


def _killed_by_the_agent(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The launcher's agent killed a worker that hung while it closed. No memory killer did."""
    if not hit.fallback or hit.error_type != "host_oom":
        return None
    for each in around.noted:
        if each.rule == "torchrun_killed_it" and earlier(each.line, hit.line):
            return consequence(
                replace(hit, error_type="exception"), NotRoot("killed by the agent", each.line)
            )
    return None


_REQUEUE = re.compile(r"DUE TO JOB REQUEUE")


def _asked_for_itself(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The job had put itself back into the queue, so the scheduler starts it again by itself.

    Its handler of the scheduler's warning tells of the warning first, and of the request after that.
    """
    warned = hit.rule == _WARNED
    if not warned and _REQUEUE.search(hit.line.text) is None:
        return None
    for each in around.noted:
        if each.rule == "job_requeues_itself" and (warned or earlier(each.line, hit.line)):
            return beside(hit, NotRoot("asked for itself", each.line))
    return None


_PYTHONS = re.compile(r"(?:^|[\s\])>:.])[A-Z]\w*(?:Error|Exception)(?:: |:?\s*$)")
_ABORTED = "terminate called without an active exception"


def _thrown_while_ending(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A thread of C++ was still there when its process ended. Python prints why behind that."""
    if hit.role != "cause" or _ABORTED not in hit.line.text:
        return None
    raised = around.exceptions.behind(hit.line)
    return None if raised is None else consequence(hit, NotRoot("thrown while ending", raised.line))


_WARNED = "lightning_requeued"
"""The rule of a handler that was warned of the end and asks for a new start."""


def _thread_of_a_job_taken_away(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A thread had ended, and its process worked on until the scheduler took the job away."""
    if _IN_A_THREAD not in hit.captures:
        return None
    taken = around.taken_away.behind(hit.line)
    return (
        None if taken is None else RootCandidate(hit, NotRoot("taken away since", taken.line), set_aside=True)
    )


def _waited_beside_one_that_worked(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A pool of which one worker was interrupted at its work did not hang: the others waited for a task."""
    if hit.captures.get("worker_of_pool") != "waits" or hit.line.file not in around.working_pools:
        return None
    return RootCandidate(replace(hit, error_type="user_interrupt", mode=None))


def _another_program_since(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A program that refuses its command line ends there. What fails behind it may belong to a later one."""
    later = around.refusals.later_program(hit)
    if later is None:
        return None
    return RootCandidate(hit, NotRoot("another program since", later.line), set_aside=True)


def of_teardown(hits: Sequence[Hit]) -> bool:
    """Whether all lines may come from processes that close after their work."""
    thrown = any(hit.rule == _THROWN for hit in hits)
    return all(_closes(hit) or (thrown and _names_what_was_thrown(hit)) for hit in hits)


def _closes(hit: Hit) -> bool:
    """Whether a process that closes may print the line.

    It is a crash, news of its end, or what a thread raised that still worked ahead. Or the process did not
    close by itself: somebody asked it to, or its time was over.
    """
    vague = hit.error_type in ("exception", "unknown", "")
    told = hit.role == "consequence" or (hit.fallback and _IN_A_THREAD in hit.captures)
    ended = hit.error_type in ("native_crash", "cancelled") or hit.rule in _NEVER_CLOSED
    return (vague and told) or ended


_NEVER_CLOSED = ("dataloader_worker_asked_to_stop", "slurm_time_limit")
_THROWN = "cpp_exception_thrown"


def _names_what_was_thrown(hit: Hit) -> bool:
    """Whether it is NCCL's error that a destructor threw: its communicator or its peers had gone before."""
    return hit.role == "consequence" and hit.error_type == "nccl"


RELATIONS: tuple[Relation, ...] = (
    _asked_for_itself,
    _went_another_way,
    _port_left_alone,
    _transport_given_up,
    _only_torn_down,
    _taken_down_for_a_reason,
    _broken_by_the_watchdog,
    _raised_by_the_wait,
    _seen_by_the_parent,
    _of_a_failing_node,
    _thread_of_a_job_taken_away,
    _thrown_while_ending,
    _waited_beside_one_that_worked,
    _another_program_since,
    _killed_by_the_agent,
)


def related(around: Surroundings) -> list[RootCandidate]:
    """The candidates, each as its first relation leaves it. A hit of role "context" is no candidate."""
    return [_first(hit, around) for hit in around.hits]


def _first(hit: Hit, around: Surroundings) -> RootCandidate:
    for relation in RELATIONS:
        changed = relation(hit, around)
        if changed is not None:
            return changed
    return RootCandidate(hit)
