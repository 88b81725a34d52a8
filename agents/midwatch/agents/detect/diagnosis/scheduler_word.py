"""The scheduler's word: what its fact of an end knows, and which lines that end prints itself. Pure.

A specific fact stands above lines that only wait, time out or say nothing. It stands above what its own
signals make processes and shells print, too: a cancelled step, a received SIGTERM, a bare "Killed". Where it
took processes or a node away, the links to them broke by that.
"""

from __future__ import annotations

from midwatch.streams.records import Hit, SchedulerFact
from midwatch.streams.records.error_types import family

_NODE_WORDS = {"NODE_FAIL": True, "LAUNCH_FAILED": None, "BOOT_FAIL": None}
"""SLURM's words for an end by a node, and whether another start may succeed."""
_MAY_PASS = ("preemption", "hardware", "slurm_failure", "ray_node_died")
_UNSPECIFIC = ("", "slurm_failure", "unknown")
_SIGNALS = {2: "user_interrupt", 4: "native_crash", 7: "native_crash", 8: "native_crash"}
"""What a signal alone tells. Any failure may end in SIGABRT or SIGSEGV, so these tell nothing."""
_SIGNALLED = 128
_NOTICES = ("dataloader_killed",)
"""Rules of a parent that saw its child end by a signal. They know no more than a bare "Killed" does."""


def is_specific(fact: SchedulerFact) -> bool:
    """Whether the scheduler knows more than that the job ended. A time limit is such knowledge."""
    return fact.error_type not in _UNSPECIFIC or fact.new in _NODE_WORDS or fact.mode == "timeout"


def kind_alone(fact: SchedulerFact) -> str:
    """The error type where nothing but the fact tells of the end: that of a telling signal, or its own word.

    A shell reports a signal as an exit code above 128.
    """
    signal = fact.signal or (fact.exit_code or 0) - _SIGNALLED
    return _SIGNALS.get(signal) or fact.error_type or "unknown"


def may_pass(fact: SchedulerFact) -> bool | None:
    """Whether another start may succeed after the end that a specific fact tells; None: it does not tell."""
    if fact.mode == "timeout":
        return None
    return _NODE_WORDS.get(fact.new, True if fact.error_type in _MAY_PASS else None)


def printed_by_the_end(root: Hit, fact: SchedulerFact) -> bool:
    """Whether the end that a specific fact tells may have printed the line, so that it proves no other cause.

    A line on a limit or a signal that agrees with the fact is its proof. A general line of a device or a link
    is not.
    """
    if not is_specific(fact) or root.mode == fact.mode == "timeout":
        return False
    if root.error_type == "host_oom":
        return fact.error_type != "host_oom" and (root.fallback or root.rule in _NOTICES)
    if family(root.error_type) == "comms" and root.transient and _took_processes_away(fact):
        return True
    if family(root.error_type) == "stopped":
        return fact.error_type != root.error_type and root.fallback
    return root.fallback and family(root.error_type) in ("infra", "comms")


def _took_processes_away(fact: SchedulerFact) -> bool:
    return fact.error_type in ("host_oom", "preemption") or fact.new == "NODE_FAIL"


def told(fact: SchedulerFact) -> str:
    """The fact in words, as the root line of a verdict that no line proves."""
    how = fact.reason or fact.new
    code = f", exit code {fact.exit_code}" if fact.exit_code is not None else ""
    signal = f", signal {fact.signal}" if fact.signal else ""
    return f"{fact.cluster or 'scheduler'}: {fact.native_id} {fact.old} → {fact.new} ({how}{code}{signal})"
