"""Transience: what the root and the steps made show of another start. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.detect.diagnosis.candidates import NotRoot
from midwatch.agents.detect.diagnosis.mistakes import MISTAKE
from midwatch.agents.detect.diagnosis.reasons import SET_ASIDE
from midwatch.agents.detect.diagnosis.relations.echoes import PEER_LEFT
from midwatch.streams.records import Hit, Verdict
from midwatch.streams.records.error_types import family

NO_STEP_SEEN = (
    "no training step was seen, so nothing shows that the same start would work; if it had trained, name its "
    "progress line in a rule with `role: progress` and a group `step`, in a folder of `rules.directories`"
)

_RAISED = ("python_exception", "python_exception_by_other_names", "python_traceback_ended")
"""Rules that know of an exception only that it was raised."""
_AWAY = re.compile(
    r"(?i)\brefused\b|\breset\b|time(?:d|s)?[ -]?out|\btemporar|unavailable|disconnected|\bclosed\b"
    r"|unreachable|no route to host|(?:host|network) is down|deadline.?exceeded|max retries|overloaded"
    r"|too many requests|NoBrokersAvailable|\b(?:429|50[234])\b|\bEOF occurred"
)
"""Words of a service or a peer that is not there now, or has no time now."""
_OF_THIS_MACHINE = re.compile(
    r"(?i)(?:\brefused\b|\b(?:could not|cannot|failed to) connect\b).{0,120}"
    r"(?:\b|//)(?:(?:localhost|127(?:\.\d+){3})\b|\[::1\])"
    r"|(?:\b|//)(?:(?:localhost|127(?:\.\d+){3})\b|\[::1\]).{0,300}\brefused\b"
)
"""Nobody listens at an address of the machine itself: who should belongs to the job or to its node."""
_NEVER_THERE = re.compile(
    r"(?i)name or service not known|no address associated|certificate|wrong_version|unknown protocol"
    r"|\b(?:401|403|404)\b|unauthori[sz]ed|forbidden|permission|denied|no space"
)
"""Words of an address or of a right that the next start lacks, too."""
_SERVED = ("communication", "storage")
"""What a service does, by its error type."""
_FILES_AWAY = "filesystem_refused"
"""A file system that failed. One that had been read or written before is mostly there again."""
_CARD_LOST = re.compile(r"CUDA (?:driver )?error: unknown error")
"""The driver's words for a card that was lost or never there. One that carried steps had been there."""
_LAUNCH_FAILED = "cuda_launch_failed"
"""A kernel ended, and the driver does not know why. All of eight labelled ones struck behind good steps, and
a restart was right for each. A kernel that traps itself does so in its first steps."""
_OF_THE_PROGRAM = ("xid_application",)
"""The driver's own word that a kernel of the program used a bad address."""
_ONE_ERROR = 3  # lines: an error that says its status below its first line says it within these
_BESIDE = ("ssh_failed", "rsync_lost_the_other_side", "go_program_could_not_dial")
_TOOLS = re.compile(r"\b(?:curl|wget|scp): ")
"""Rules and words of tools of the script around the training. What they miss says nothing of the training."""

_COPIES = re.compile(
    r"\A\s*(?:(?:scp|rsync|rclone|gsutil|azcopy|s3cmd|cp|mv|tar|dd)\b[^:]{0,40}: "
    r"|(?:upload|copy|move) failed: )"
)
"""What a tool that copies files prints of itself. Behind steps the training may have ended well before. curl
and wget are not among them: they mostly fetch what the work needs next."""
_NUMBERED = re.compile(r"\bWorkNCCL\(SeqNum=(\d+),")
_FIRST_STEPS = 10
_FIRST_COLLECTIVES = 100
"""So few collectives are a step or two. None of nine labelled time-outs of them asks for a restart only."""
HARDLY_BEGUN = "it timed out among the first hundred collectives of its group, so hardly anything had worked"
MAY_BE_DONE = "a tool of the script failed behind the steps: see whether the training had ended"


def as_proven(
    verdict: Verdict,
    root: Hit,
    hits: Sequence[Hit],
    *,
    worked: bool,
    step: int | None = None,
    worked_before: bool = False,
) -> Verdict:
    """The verdict with the transience that the root and the steps show. `worked`: the attempt made a step.
    `step`: its last one, if any line numbered it. `worked_before`: an earlier attempt that began in the same
    way made a step. That shows as much of the start as a step of its own.

    An exception of another name than `MISTAKE` may be of anything. If the run made no step, a wait or a bad
    link shows too little. A wait for peers gives no reason, and a link may never have been set up. A link or
    a service that had carried steps was set up, so its failure may pass. So may that of a file system or a
    card. But what a copying tool says behind steps may follow a good end. Where nothing answers on the
    machine itself before a step, its own part may never have been started.
    """
    if root.rule in _RAISED and root.fallback and MISTAKE.search(root.line.text) is None:
        return replace(verdict, transient=None)
    first = not worked_before and (step or 0) < _FIRST_STEPS and _is_among_the_first(root)
    if worked and verdict.transient and first:
        return replace(verdict, transient=None, doubt=HARDLY_BEGUN)
    if worked or worked_before:
        return _behind_steps(verdict, root, hits, own=worked)
    vague = root.fallback or root.error_type != "nccl" or root.rule in PEER_LEFT
    left = verdict.family == "comms" and vague
    fabric = root.role == "cause" and _is_of_the_fabric(root)
    own = root.error_type in _SERVED and _OF_THIS_MACHINE.search(root.line.text) is not None
    waited = fabric or own or verdict.family == "stall" or (root.role == "consequence" and left)
    return replace(verdict, transient=None, doubt=NO_STEP_SEEN) if waited and verdict.transient else verdict


def _behind_steps(verdict: Verdict, root: Hit, hits: Sequence[Hit], *, own: bool) -> Verdict:
    """The verdict on a start that made steps: in this attempt (`own`), or in one before."""
    if own and verdict.transient is not False and _COPIES.match(root.line.text):
        return replace(verdict, transient=None, doubt=MAY_BE_DONE)
    if verdict.transient is False and _had_answered(root):
        return replace(verdict, transient=None)
    if root.rule == _LAUNCH_FAILED:
        return replace(verdict, transient=not any(hit.rule in _OF_THE_PROGRAM for hit in hits))
    lost = _lost_a_peer(root) or _lost_a_service(root, hits) or root.rule == _FILES_AWAY or _lost_a_card(root)
    return replace(verdict, transient=True) if verdict.transient is None and lost else verdict


def beside_a_kill(verdict: Verdict, others: Sequence[tuple[Hit, NotRoot]]) -> Verdict:
    """A link that broke, where a process was killed too. The kill may have broken the link."""
    if verdict.family != "comms" or not verdict.transient:
        return verdict
    for hit, reason in others:
        if hit.error_type == "host_oom" and reason.feature not in SET_ASIDE:
            return replace(verdict, transient=None, doubt=f"a process was killed: {hit.line.text.strip()}")
    return verdict


def beside_a_missing_command(verdict: Verdict, others: Sequence[tuple[Hit, NotRoot]]) -> Verdict:
    """A job that somebody cancelled, whose script had missed a command. That may be why it was cancelled."""
    if verdict.error_type != "cancelled" or not verdict.transient:
        return verdict
    for hit, reason in others:
        if reason.name == "script went on" and hit.error_type == "config":
            return replace(verdict, transient=None, doubt=f"its script had failed: {hit.line.text.strip()}")
    return verdict


def _is_of_the_fabric(root: Hit) -> bool:
    """Whether it is the meeting of the ranks, or a link between them, that failed, and no service."""
    link = family(root.error_type) == "comms" and root.error_type != "communication"
    return root.error_type == "rendezvous" or (link and root.subsystem == "network")


def _lost_a_peer(root: Hit) -> bool:
    """Whether its rule knows that a peer was silent or gone. A card that refuses is none."""
    if root.fallback:
        told = root.rule == "torch_distributed_error" and _is_away(root.line.text)
        return told or root.rule == "ray_worker_system_error"  # Ray's notices come in either order
    if root.error_type in ("distributed_timeout", "rendezvous") or root.rule == "nccl_connect_failed":
        return True
    link = root.error_type in ("communication", "nccl")
    return link and root.role == "consequence" and root.subsystem == "network"


def _lost_a_service(root: Hit, hits: Sequence[Hit]) -> bool:
    """Whether a service was away, by the words of its error or of the lines right below it."""
    if root.error_type != "communication" or root.subsystem != "network":
        return False
    if root.rule in _BESIDE or _TOOLS.search(root.line.text):
        return False
    below = (
        hit.line.text
        for hit in hits
        if hit.rule == root.rule
        and hit.line.file == root.line.file
        and 0 <= hit.line.number - root.line.number <= _ONE_ERROR
    )
    return any(_is_away(text) for text in (root.line.text, *below))


def _lost_a_card(root: Hit) -> bool:
    return root.error_type == "hardware" and _CARD_LOST.search(root.line.text) is not None


def _is_among_the_first(root: Hit) -> bool:
    """Whether torch's watchdog tells of a collective that timed out, and numbers it as one of the first."""
    numbered = _NUMBERED.search(root.line.text) if root.error_type == "nccl_timeout" else None
    return numbered is not None and int(numbered[1]) < _FIRST_COLLECTIVES


def _had_answered(root: Hit) -> bool:
    """Whether the line blames the network's configuration for a peer that does not answer any more."""
    return root.error_type == "config" and root.subsystem == "network" and _is_away(root.line.text)


def _is_away(text: str) -> bool:
    return _AWAY.search(text) is not None and _NEVER_THERE.search(text) is None
