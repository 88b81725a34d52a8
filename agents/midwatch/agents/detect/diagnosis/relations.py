"""Relations: what one line of an attempt makes of another. A line that only follows is no root. Pure.

Each relation names a mechanism. It looks at one candidate beside all lines and gives the candidate's new
standing, or None. The order among the candidates that remain is in `root_line`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from midwatch.agents.detect.line_order import earlier
from midwatch.streams.records import Hit
from midwatch.streams.records.error_types import family


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The lines beside a candidate. `hits`: causes and consequences. `noted`: context since the last step."""

    hits: Sequence[Hit]
    noted: Sequence[Hit]


Relation = Callable[[Hit, Surroundings], "Hit | None"]


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
    """A link broke while the launchers closed their meeting, and nothing else failed: the run was over."""
    if not any(each.rule == "rendezvous_not_closed" for each in around.noted):
        return None
    links = (each.role == "consequence" and family(each.error_type) == "comms" for each in around.hits)
    return _aside(hit) if all(links) else None


_WATCHDOG = ("torch_watchdog_timeout", "torch_dump_names_the_rank")


def _broken_by_the_watchdog(hit: Hit, around: Surroundings) -> Hit | None:
    """The watchdog had ended the collective. What the collective then raised only repeats that."""
    raised = hit.rule == "models_differ"
    waited = hit.role == "consequence" and hit.error_type in ("distributed_timeout", "communication")
    if hit.rule in _WATCHDOG or not (raised or waited):
        return None
    reports = [each for each in around.hits if each.rule in _WATCHDOG]
    if waited and reports:
        return replace(hit, fallback=True)
    if raised and any(earlier(each.line, hit.line) for each in reports):
        return replace(_consequence(hit), fallback=True)
    return None


_SAME_END = 60  # lines between a report and the exceptions that follow from it


def _raised_by_the_wait(hit: Hit, around: Surroundings) -> Hit | None:
    """A general exception right after the report of a broken collective comes from that collective."""
    if hit.role != "cause" or not hit.fallback or "RuntimeError" not in hit.line.text:
        return None
    if hit.error_type != "exception":
        return None
    for each in around.hits:
        report = each.role == "consequence" and not each.fallback and each.error_type in _WAITS
        if report and each.line.file == hit.line.file and 0 < hit.line.number - each.line.number <= _SAME_END:
            return _consequence(hit)
    return None


_WAITS = ("nccl_timeout", "distributed_timeout")
_NOTICES = {
    "dataloader_killed": ("memory",),
    "dataloader_worker_crashed": ("code", "memory", "infra", "numerics"),
}
"""Rules of a parent that saw its child end, and the families in which the child's own line tells more."""


def _seen_by_the_parent(hit: Hit, around: Surroundings) -> Hit | None:
    """A parent saw its child end. The child's own error, or the record of who killed it, tells why."""
    families = _NOTICES.get(hit.rule, ())
    for each in around.hits:
        own = each.role == "cause" and each.rule not in _NOTICES and family(each.error_type) in families
        killer = hit.rule == "dataloader_killed" and own
        if killer or (own and earlier(each.line, hit.line)):
            return replace(_consequence(hit), fallback=True)
    return None


def _of_a_failing_node(hit: Hit, around: Surroundings) -> Hit | None:
    """The scheduler names a failed node. Vague lines before that are what the node still said."""
    if hit.role != "cause" or not hit.fallback or hit.rule == _NODE_FAILED:
        return None
    failed = any(each.rule == _NODE_FAILED and earlier(hit.line, each.line) for each in around.hits)
    beside = (each for each in around.hits if each.fallback and each.line == hit.line)
    vague = any(family(each.error_type) in ("infra", "comms") for each in beside)
    return _consequence(hit) if failed and vague else None


def _killed_by_the_agent(hit: Hit, around: Surroundings) -> Hit | None:
    """The launcher's agent killed a worker that hung while it closed. No memory killer did."""
    if not hit.fallback or hit.error_type != "host_oom":
        return None
    agent = any(each.rule == "torchrun_killed_it" and earlier(each.line, hit.line) for each in around.noted)
    return replace(_consequence(hit), error_type="exception") if agent else None


_NODE_FAILED = "slurm_node_failure_seen"
_REQUEUE = re.compile(r"DUE TO JOB REQUEUE")


def _asked_for_itself(hit: Hit, around: Surroundings) -> Hit | None:
    """The job had put itself back into the queue, so the scheduler starts it again by itself."""
    if not _asked_requeue(around):
        return None
    return _aside(hit)


def _asked_requeue(around: Surroundings) -> bool:
    """Whether SLURM requeued the job after the job itself had asked for that."""
    ends = [each for each in around.hits if _REQUEUE.search(each.line.text)]
    asked = [each for each in around.noted if each.rule == "job_requeues_itself"]
    return any(earlier(each.line, end.line) for each in asked for end in ends)


def of_teardown(hit: Hit) -> bool:
    """Whether the line may come from a process that closes after its work: a crash, a lost peer, an end."""
    vague = hit.role == "consequence" and hit.error_type in ("exception", "unknown", "")
    return vague or hit.error_type == "native_crash" or family(hit.error_type) == "comms"


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


def related(hits: Sequence[Hit], noted: Sequence[Hit]) -> list[Hit]:
    """The candidates, each as its first relation leaves it. A hit of role "context" is no candidate."""
    around = Surroundings(hits, noted)
    return [_first(hit, around) for hit in hits]


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

    The last warning before the error counts. In one process's stack of warnings the deepest comes first.
    """
    if root.rule not in ("nccl_error", "nccl_misuse", "nccl_device_call_failed"):
        return root
    spoken = [
        each
        for each in around.noted
        if each.rule == "nccl_warning" and earlier(each.line, root.line) and _tells(each.line.text)
    ]
    if not spoken:
        return root
    said = max(spoken, key=lambda each: (each.line.time, each.line.number))
    return replace(
        said, role="cause", error_type=root.error_type, transient=root.transient, remedy=root.remedy
    )


def _tells(text: str) -> bool:
    return _OWN_WORD.search(text) is not None and _BENIGN.search(text) is None
