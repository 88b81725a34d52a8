"""Noted lines: context that tells the root's failure better than the root does. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.detect.diagnosis.candidates import speaker
from midwatch.agents.detect.diagnosis.hindsight import is_bare_end
from midwatch.agents.detect.line_order import earlier, in_order, maybe_earlier
from midwatch.streams.records import Hit, Line
from midwatch.streams.records.error_types import family

_OWN_WORD = re.compile(r"NCCL WARN (?!(?:Cuda|CUDA|HIP|Hip) failure)(?!Call to \w+ failed)")
_CALL = re.compile(r"NCCL WARN Call to \w+ failed ?(?:: |with error )[A-Z]")
"""A call of the system and its reason: it tells more than an error without any."""
_NAMES_NO_REASON = (
    "nccl_error",
    "nccl_misuse",
    "nccl_device_call_failed",
    "nccl_proxy_failed",
    "nccl_call_returned_an_error",
)
_PRINTED_BY_NCCL = re.compile(r"\bNCCL (?:WARN|INFO)\b")
_OF_A_PEER = re.compile(r"remote|Connection|[Ss]ocket|completion from peer|[Tt]imed? ?out")
"""Words of a warning that tells of another process. Behind an error it may be the news of that error."""
_BENIGN = re.compile(r"libibverbs|No plugin|[Ff]ailed to find|environment variable|NCCL_\w+ is deprecated")
_LEFT_ALONE = (
    "One process ended its part while the others went on and waited for it: let all of them decide together, "
    "from a value that is reduced over them."
)
_NOBODY = (None, None)
LEFT_BEHIND = "left behind"
"""Why a cause stands aside behind which the job made two more steps."""
MISSED_BY_A_BUILD = ("linker_misses_a_library", "compiler_not_there")
"""Rules of context that explain the end of a build, and nothing else."""
WITHOUT_COLLNET = "nccl_without_collnet"
SERVER_ASKED_TO_END = "vllm_server_asked_to_end"
LINK_NOT_CLOSED = "nccl_link_not_closed"
STARTED_AGAIN = "snakemake_starts_again"
_WAITS_FOR_GPUS, _ENGINE_IS_UP = "vllm_waits_for_gpus", "vllm_engine_is_up"
NOTED = (
    *MISSED_BY_A_BUILD, WITHOUT_COLLNET, SERVER_ASKED_TO_END, LINK_NOT_CLOSED, STARTED_AGAIN, _WAITS_FOR_GPUS,
    _ENGINE_IS_UP,
)  # fmt: skip
"""Rules of context that explain no end by themselves, and that a relation asks for."""
LEFT_THE_SCRIPT = "left_the_script"
"""What match captures of an exception whose traceback begins in the script's own module."""

_LINKS = ("communication", "nccl")
# Python's code of an exception, and the signals of whoever asks a process to end.
_BY_A_LINK = ("1", "-15", "-2", "-9")
_ABORTED = "-6"  # torch's watchdog ends its process so
_OF_A_NODE = (4, 8, 16)
_TOOLS, _NINJA = "build_tools_missing", "'ninja'"
_BUILDS = (_TOOLS, "build_stopped")
_OF_A_BUILD = 40  # lines: the commands of its last steps
_NOT_STARTED = ("cuda_unknown_error", "cuda_device_unavailable", "cuda_no_device")
_INITIALIZING = "CUDA initialization: "
_NO_CARD = re.compile(
    r"(?i)(?:\bno|n't|not|cannot)\b.{0,30}\b(?:gpus?|cuda|accelerators?)\b"
    r"|\b(?:gpus?|cuda|accelerators?)\b.{0,40}\b(?:not available|not found|none|unavailable|is False)"
)
_LINK_GIVEN_UP = ("nccl_ib_retries_exhausted", "nccl_ib_completion_error")


def words_of_nccl(root: Hit | None, noted: Sequence[Hit]) -> Hit | None:
    """NCCL's own warning in place of its general error, which names no reason.

    The last warning before the error counts. Those that name a failed call count only where no other
    stands before it. If none stands before what a framework raised, it is the first one behind that: of
    another process, collected later.
    """
    if root is None or root.rule not in _NAMES_NO_REASON:
        return root
    printed = [each for each in noted if each.rule == "nccl_warning"]
    warnings = [each for each in printed if _tells(each.line.text)]
    calls = [each for each in printed if _CALL.search(each.line.text)]
    before = [each for each in warnings if earlier(each.line, root.line)]
    last = max(
        before or [each for each in calls if earlier(each.line, root.line)], key=in_order, default=None
    )
    if last is None and _PRINTED_BY_NCCL.search(root.line.text) is None:
        others = (each for each in warnings if _OF_A_PEER.search(each.line.text) is None)
        last = min(others, key=in_order, default=None)
    if last is None:
        return root
    role = root.role if root.fallback else "cause"  # what a call handed up shows no more than that it failed
    return replace(last, role=role, error_type=root.error_type, transient=root.transient, remedy=root.remedy)


def _tells(text: str) -> bool:
    return _OWN_WORD.search(text) is not None and _BENIGN.search(text) is None


def word_of_the_build(root: Hit | None, noted: Sequence[Hit]) -> Hit | None:
    """What the linker or the shell misses, in place of a build tool that says only that it failed.

    The same words of a probe for a library that is not needed explain nothing, so they stand near the root.
    """
    if root is None or root.rule not in _BUILDS or (root.rule == _TOOLS and _NINJA not in root.line.text):
        return root
    missed = [each for each in noted if each.rule in MISSED_BY_A_BUILD and _is_near(each.line, root.line)]
    if not missed:
        return root
    return replace(min(missed, key=in_order), role="cause", error_type=root.error_type, transient=False)


def _is_near(line: Line, root: Line) -> bool:
    return line.file == root.file and abs(line.number - root.number) <= _OF_A_BUILD


def card_not_started(root: Hit | None, noted: Sequence[Hit]) -> Hit | None:
    """What CUDA warned of when it did not start, in place of an exception that only misses a card."""
    if root is None or root.role != "cause" or _NO_CARD.search(root.line.text) is None:
        return root
    warned = [
        each
        for each in noted
        if each.rule in _NOT_STARTED and _INITIALIZING in each.line.text and earlier(each.line, root.line)
    ]
    return replace(max(warned, key=in_order), role="cause", aside="") if warned else root


def service_that_answered(root: Hit | None, hits: Sequence[Hit]) -> Hit | None:
    """The 5xx of the hub, in place of its client's word that nothing came: the hub was away for a while."""
    if root is None or root.rule != "hub_unreachable":
        return root
    answers = [
        each
        for each in hits
        if each.rule == "said_gateway" and speaker(each) == speaker(root) and earlier(each.line, root.line)
    ]
    return max(answers, key=in_order) if answers else root


def port_that_fell(root: Hit | None, noted: Sequence[Hit]) -> Hit | None:
    """The port's own event in place of the link that NCCL gave up, or the stall, behind it.

    By itself it is only a flap, which NCCL may get over.
    """
    if root is None or (root.rule not in _LINK_GIVEN_UP and root.error_type != "nccl_timeout"):
        return root
    fell = [each for each in noted if each.rule == "nccl_ib_port_event" and earlier(each.line, root.line)]
    return replace(min(fell, key=in_order), role="cause") if fell else root


def waited_for_gpus(root: Hit | None, noted: Sequence[Hit]) -> Hit | None:
    """The wait for GPUs that vLLM never got, in place of whoever ended it: the next start waits, too."""
    if root is None or family(root.error_type) != "stopped":
        return root
    waits = [each for each in noted if each.rule == _WAITS_FOR_GPUS and earlier(each.line, root.line)]
    last = max(waits, key=in_order, default=None)
    if last is None or any(each.rule == _ENGINE_IS_UP and earlier(last.line, each.line) for each in noted):
        return root
    return replace(min(waits, key=in_order), role="cause", transient=None)


def process_that_left(root: Hit | None, left: Hit | None) -> Hit | None:
    """The line of the process that left, as the cause, if the root only shows a broken collective."""
    if root is None or left is None or root.role == "cause" or family(root.error_type) != "comms":
        return root
    speakers = {speaker(root), speaker(left)}
    if not maybe_earlier(left.line, root.line) or (len(speakers) == 1 and _NOBODY not in speakers):
        return root
    return replace(left, role="cause", error_type="exception", transient=False, mode=None, remedy=_LEFT_ALONE)


def failed_before_the_wait(root: Hit | None, noted: Sequence[Hit], *, failed: bool = False) -> Hit | None:
    """The cause behind which few steps came, if the root is a process that waited in vain.

    Ranks that are ahead, or whose output was held back, print such steps after one of them has failed. An
    exception that ended its process tells more than any report of an end, too, and than a person's cancel
    behind it. `failed`: the scheduler says that the attempt failed, which counts where no line tells of it.
    """
    left = [each for each in noted if each.aside == LEFT_BEHIND]
    if root is None:
        left = [each for each in left if failed and ended_its_process(each)]
    elif root.role == "cause" or family(root.error_type) != "comms":
        weak = is_bare_end(root) or family(root.error_type) == "stopped" or _is_a_link(root)
        left = [each for each in left if weak and ended_its_process(each)]
    if root is not None:
        left = [each for each in left if maybe_earlier(each.line, root.line)]
    return replace(min(left, key=in_order), role="cause", aside="") if left else root


def ended_its_process(hit: Hit) -> bool:
    """Whether it is an exception that nothing of its program caught."""
    return LEFT_THE_SCRIPT in hit.captures


def _is_a_link(root: Hit) -> bool:
    return root.transient is True and family(root.error_type) == "comms"


def exit_before_the_wait(root: Hit | None, exits: Sequence[Hit]) -> Hit | None:
    """The report of a process that had failed before the others waited for it or lost their link to it.

    `exits`: lines that only say how a process ended. They say nothing of another start. What the launcher's
    list of failures quotes is the word of the process itself.
    """
    if root is None or family(root.error_type) not in ("comms", "stall") or root.transient is False:
        return root
    if _is_quoted_in_a_list(root, exits):
        return root
    failed = [each for each in exits if _says_a_failed_exit(each) and earlier(each.line, root.line)]
    return min(failed, key=in_order) if failed else root


def _is_quoted_in_a_list(root: Hit, hits: Sequence[Hit]) -> bool:
    """Whether torchrun's list of failures holds the line, within the traceback of a process."""
    lists = (each for each in hits if each.rule == "torchrun_child_failed" and "lists" in each.captures)
    return root.line.text.startswith("  ") and any(earlier(each.line, root.line) for each in lists)


def exit_of_the_peer(root: Hit | None, hits: Sequence[Hit]) -> Hit | None:
    """The launcher's report of the process to which the others lost their link.

    It ended by itself, in a way that a lost link ends no process, and reported no lost link. A launcher looks
    for ends now and then, so its report may stand behind those of the others.
    """
    if root is None or root.transient is not True or root.error_type not in _LINKS:
        return root
    told = {speaker(hit) for hit in hits if hit.error_type in _LINKS}
    ranks = {rank for who in told for rank in who if rank is not None}
    if not ranks:
        return root
    by_a_link = _BY_A_LINK if root.error_type == "communication" else (*_BY_A_LINK, _ABORTED)
    for hit in hits:
        task = hit.captures.get("local_rank", "")
        code = hit.captures.get("exit_code", "").lstrip("0")
        if task.isdecimal() and code and code not in by_a_link and not _may_be_one_of(int(task), ranks):
            same = [each for each in hits if each.line == hit.line and each.error_type == "native_crash"]
            return replace((same or [hit])[0], transient=None)
    return root


def _may_be_one_of(local_rank: int, ranks: set[int]) -> bool:
    """Whether the process of a node may have one of those ranks, on nodes of the usual sizes."""
    return any(local_rank in (rank, *(rank % size for size in _OF_A_NODE if rank >= size)) for rank in ranks)


def _says_a_failed_exit(hit: Hit) -> bool:
    """Whether a launcher or a scheduler says that a process ended by itself with an exit code of failure."""
    bare = hit.role == "consequence" and hit.fallback and hit.error_type in ("exception", "unknown", "")
    code = hit.captures.get("exit_code", "")
    return bare and code.lstrip("0") != "" and not code.startswith("-")
