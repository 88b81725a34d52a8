"""Relations: what one line of an attempt makes of another. A line that only follows is no root. Pure.

Each relation names a mechanism. It looks at one candidate beside all lines and gives the candidate's new
standing, or None. The order among the candidates that remain is in `root_line`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from midwatch.agents.detect.diagnosis.root_line import speaker
from midwatch.agents.detect.line_order import earlier, in_order
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
        self.waits = [hit for hit in hits if _is_report_of_a_wait(hit)]
        self.failed_nodes = [hit for hit in hits if hit.rule == _NODE_FAILED]
        self.causes = [hit for hit in hits if hit.role == "cause"]
        self.only_links = all(hit.role == "consequence" and family(hit.error_type) == "comms" for hit in hits)


Relation = Callable[[Hit, Surroundings], "Hit | None"]

_WATCHDOG = ("torch_watchdog_timeout", "torch_dump_names_the_rank")
_NODE_FAILED = "slurm_node_failure_seen"
_WAITS = ("nccl_timeout", "distributed_timeout")


def _is_report_of_a_wait(hit: Hit) -> bool:
    return hit.role == "consequence" and not hit.fallback and hit.error_type in _WAITS


def _aside(hit: Hit) -> Hit:
    return replace(hit, role="context")


def _consequence(hit: Hit) -> Hit:
    return replace(hit, role="consequence", transient=None)


def _went_another_way(hit: Hit, around: Surroundings) -> Hit | None:
    """A probe failed, and the program took its fallback: the failure ended nothing."""
    way = _FALLBACKS.get(hit.rule)
    if way is None or not any(each.rule == way and earlier(hit.line, each.line) for each in around.noted):
        return None
    return _aside(hit)


_FALLBACKS = {"ofi_plugin_setup_failed": "nccl_tcp_fallback"}


def _only_torn_down(hit: Hit, around: Surroundings) -> Hit | None:
    """A link broke while the launchers closed their meeting, and nothing else failed: the run was over.

    A store whose node died looks alike. Then the job's end is no quiet one.
    """
    if not around.over or not around.only_links:
        return None
    return _aside(hit) if any(each.rule == "rendezvous_not_closed" for each in around.noted) else None


def _broken_by_the_watchdog(hit: Hit, around: Surroundings) -> Hit | None:
    """The watchdog had ended the collective. What the collective then raised only repeats that."""
    if hit.rule == "models_differ":
        broken = any(earlier(each.line, hit.line) for each in around.reports)
        return replace(_consequence(hit), fallback=True) if broken else None
    waited = hit.role == "consequence" and hit.error_type in ("distributed_timeout", "communication")
    return replace(hit, fallback=True) if waited and around.reports and hit.rule not in _WATCHDOG else None


_SAME_END = 60  # lines between a report and the exceptions that follow from it
_OF_A_COLLECTIVE = re.compile(
    r"RuntimeError: .*(?:synchroni[sz]e|[Cc]ollective|communicator|abort|[Tt]imed? ?out|[Cc]onnection)"
)


def _raised_by_the_wait(hit: Hit, around: Surroundings) -> Hit | None:
    """The general exception of a collective, right after the same rank's report that it waited in vain."""
    general = hit.role == "cause" and hit.fallback and hit.error_type == "exception"
    if not general or _OF_A_COLLECTIVE.search(hit.line.text) is None:
        return None
    follows = any(
        each.line.file == hit.line.file
        and speaker(each) == speaker(hit)
        and 0 < hit.line.number - each.line.number <= _SAME_END
        for each in around.waits
    )
    return _consequence(hit) if follows else None


_NOTICES = {
    "dataloader_killed": ("memory",),
    "dataloader_worker_crashed": ("code", "memory", "infra", "numerics"),
}
"""Rules of a parent that saw its child end, and the families in which the child's own line tells more."""


def _seen_by_the_parent(hit: Hit, around: Surroundings) -> Hit | None:
    """A parent saw its child end. The child's own error, or the record of who killed it, tells why.

    The record of a memory killer may stand behind the notice, because another program writes it.
    """
    families = _NOTICES.get(hit.rule)
    if families is None:
        return None
    for each in around.causes:
        tells = each.rule not in _NOTICES and family(each.error_type) in families
        if tells and (hit.rule == "dataloader_killed" or earlier(each.line, hit.line)):
            return replace(_consequence(hit), fallback=True)
    return None


def _of_a_failing_node(hit: Hit, around: Surroundings) -> Hit | None:
    """The scheduler names a failed node. Vague lines before that are what the node still printed."""
    if not around.failed_nodes or hit.role != "cause" or not hit.fallback or hit.rule == _NODE_FAILED:
        return None
    if not any(earlier(hit.line, each.line) for each in around.failed_nodes):
        return None
    beside = (each for each in around.causes if each.fallback and each.line == hit.line)
    vague = any(family(each.error_type) in ("infra", "comms") for each in beside)
    return _consequence(hit) if vague else None


def _killed_by_the_agent(hit: Hit, around: Surroundings) -> Hit | None:
    """The launcher's agent killed a worker that hung while it closed. No memory killer did."""
    if not hit.fallback or hit.error_type != "host_oom":
        return None
    agent = any(each.rule == "torchrun_killed_it" and earlier(each.line, hit.line) for each in around.noted)
    return replace(_consequence(hit), error_type="exception") if agent else None


_REQUEUE = re.compile(r"DUE TO JOB REQUEUE")


def _asked_for_itself(hit: Hit, around: Surroundings) -> Hit | None:
    """The job had put itself back into the queue, so the scheduler starts it again by itself."""
    if _REQUEUE.search(hit.line.text) is None:
        return None
    requests = (each for each in around.noted if each.rule == "job_requeues_itself")
    return _aside(hit) if any(earlier(each.line, hit.line) for each in requests) else None


def of_teardown(hit: Hit) -> bool:
    """Whether the line may come from a process that closes after its work: a crash, or news of its end."""
    vague = hit.role == "consequence" and hit.error_type in ("exception", "unknown", "")
    return vague or hit.error_type == "native_crash"


RELATIONS: tuple[Relation, ...] = (
    _asked_for_itself,
    _went_another_way,
    _only_torn_down,
    _broken_by_the_watchdog,
    _raised_by_the_wait,
    _seen_by_the_parent,
    _of_a_failing_node,
    _killed_by_the_agent,
)


def related(around: Surroundings) -> list[Hit]:
    """The candidates, each as its first relation leaves it. A hit of role "context" is no candidate."""
    return [_first(hit, around) for hit in around.hits]


def _first(hit: Hit, around: Surroundings) -> Hit:
    for relation in RELATIONS:
        changed = relation(hit, around)
        if changed is not None:
            return changed
    return hit


_OWN_WORD = re.compile(r"NCCL WARN (?!(?:Cuda|CUDA|HIP|Hip) failure)(?!Call to \w+ failed)")
_BENIGN = re.compile(r"libibverbs|No plugin|[Ff]ailed to find|environment variable|NCCL_\w+ is deprecated")


def words_of_nccl(root: Hit, around: Surroundings) -> Hit:
    """NCCL's own warning in place of its general error, which names no reason.

    The last warning before the error counts, less those that name only the failed call.
    """
    if root.rule not in ("nccl_error", "nccl_misuse", "nccl_device_call_failed"):
        return root
    warnings = [
        each
        for each in around.noted
        if each.rule == "nccl_warning" and earlier(each.line, root.line) and _tells(each.line.text)
    ]
    if not warnings:
        return root
    last = max(warnings, key=in_order)
    return replace(
        last, role="cause", error_type=root.error_type, transient=root.transient, remedy=root.remedy
    )


def _tells(text: str) -> bool:
    return _OWN_WORD.search(text) is not None and _BENIGN.search(text) is None
