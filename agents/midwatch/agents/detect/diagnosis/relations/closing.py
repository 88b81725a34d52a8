"""Closing: what processes print that are ending for another reason, or after their work. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate, beside, consequence, speaker
from midwatch.agents.detect.diagnosis.noted_lines import (
    LEFT_THE_SCRIPT,
    LINK_NOT_CLOSED,
    SERVER_ASKED_TO_END,
)
from midwatch.agents.detect.diagnosis.relations.outlived import IN_A_THREAD
from midwatch.agents.detect.diagnosis.relations.surroundings import Surroundings
from midwatch.agents.detect.line_order import FirstAndLast, earlier
from midwatch.streams.records import Hit
from midwatch.streams.records.error_types import family

_RAISED = re.compile(
    r"^(?:\[[\w:]+\]:? *)?(?:[a-z]\w*\.)*(?:Runtime|Dist\w+|Rendezvous\w+|Connection\w*|Timeout)Error\b"
)
_PYTHONS = re.compile(r"(?:^|[\s\])>:.])[A-Z]\w*(?:Error|Exception)(?:: |:?\s*$)")
_ABORTED = "terminate called without an active exception"
_DESTROYED = re.compile(r"^\s*what\(\):\s+(?:\(External\) )?CUDA error\b")
"""What a destructor of C++ meets on the card. NCCL's own threads name themselves in front of it."""
_CLEARED = re.compile(
    r"TypeError: 'NoneType' object is not callable|\bmeta_path is None, Python is likely shutting down"
)
"""What a destructor meets behind the script's end."""
_COMPANION, _ENGINE_GONE = "companion_died", "EngineDeadError"
_LOADER_SAW = "is killed by signal: Aborted"
_CLOSES_WITHIN = 40  # lines: the traceback that Python printed
_LAST_ERROR = 6  # lines of an error of NCCL's, the last of which is its own word
_NEVER_CLOSED = ("dataloader_worker_asked_to_stop", "slurm_time_limit")
_THROWN = "cpp_exception_thrown"
_SHELL_SAW = re.compile(r"(?:^|\s)(\d+) Aborted\b")
_SRUN_SAW = re.compile(r"\bsrun: error: (\S+): task \d+: (?:Aborted|Exited with exit code 134)")
_OF_NCCL = re.compile(r"([\w.-]+):(\d+):\d+ \[\d+\] ")


def only_torn_down(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A link broke while the launchers closed their meeting, and nothing else failed: the run was over.

    A store whose node died looks alike. Then the job's end is no quiet one. A launcher that dies of the
    broken link closes first and prints its exception behind that.
    """
    if not around.over or not around.once(_only_links):
        return None
    for each in around.noted:
        died = earlier(each.line, hit.line) and _RAISED.search(hit.line.text) is not None
        if each.rule == "rendezvous_not_closed" and not died:
            return beside(hit, NotRoot("only torn down", each.line))
    return None


def _only_links(around: Surroundings) -> bool:
    return all(hit.role == "consequence" and family(hit.error_type) == "comms" for hit in around.hits)


def server_closed_on_request(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """vLLM's server was asked by a signal to end, and lost its engine while it closed."""
    if hit.rule != _COMPANION or _ENGINE_GONE not in hit.line.text:
        return None
    for each in around.noted:
        of_the_file = each.rule == SERVER_ASKED_TO_END and each.line.file == hit.line.file
        if of_the_file and earlier(each.line, hit.line):
            return beside(hit, NotRoot("server asked to end", each.line))
    return None


def links_were_closed(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """An error of NCCL's whose own word is that it could not close a link: its process was ending already."""
    if hit.role != "consequence" or hit.error_type != "nccl":
        return None
    for each in around.noted:
        below = each.line.number - hit.line.number
        same = each.line.file == hit.line.file and speaker(each) == speaker(hit)
        if each.rule == LINK_NOT_CLOSED and same and 0 < below <= _LAST_ERROR:
            return beside(hit, NotRoot("link not closed", each.line))
    return None


def aborted_in_a_loader(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A worker of a loader that was being closed gave up. Python ignored what the loader raised of that."""
    if _ABORTED not in hit.line.text:
        return None
    for each in around.once(_ignored_of_loaders):
        below = each.line.number - hit.line.number
        if each.line.file == hit.line.file and 0 < below <= _CLOSES_WITHIN:
            return beside(hit, NotRoot("ignored", each.line))
    return None


def _ignored_of_loaders(around: Surroundings) -> list[Hit]:
    return [each for each in around.noted if each.aside == "ignored" and _LOADER_SAW in each.line.text]


def crashed_while_shut_down(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """Its process crashed while Python cleared its modules: the script had run to its end.

    Python prints an exception that ends the script before that, and it is then the cause.
    """
    if hit.error_type != "native_crash":
        return None
    cleared = _right_above(hit, around.once(_ignored_in_shutdown))
    return None if cleared is None else beside(hit, NotRoot("shut down", cleared.line))


def _right_above(hit: Hit, others: Sequence[Hit]) -> Hit | None:
    """The first of the others that the hit's own process printed shortly before it."""
    for each in others:
        above = hit.line.number - each.line.number
        if each.line.file == hit.line.file and speaker(each) == speaker(hit) and 0 < above <= _CLOSES_WITHIN:
            return each
    return None


def _ignored_in_shutdown(around: Surroundings) -> list[Hit]:
    return [each for each in around.noted if each.aside == "ignored" and _CLEARED.search(each.line.text)]


def thrown_while_ending(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A thread of C++ was still there when its process ended. Python prints why below or right above."""
    if hit.role != "cause" or _ABORTED not in hit.line.text:
        return None
    for each in around.once(_interrupts):
        above = hit.line.number - each.line.number
        if each.line.file == hit.line.file and 0 < above <= _CLOSES_WITHIN:
            return consequence(hit, NotRoot("thrown while ending", each.line))
    raised = around.once(_exceptions).behind(hit.line)
    return None if raised is None else consequence(hit, NotRoot("thrown while ending", raised.line))


def thrown_by_a_destructor(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """CUDA's refusal that a destructor threw, right below the exception that had ended the script."""
    if hit.role != "cause" or _DESTROYED.search(hit.line.text) is None:
        return None
    ended = _right_above(hit, around.once(_that_left_the_script))
    return None if ended is None else consequence(hit, NotRoot("thrown while ending", ended.line))


def _that_left_the_script(around: Surroundings) -> list[Hit]:
    return [hit for hit in around.causes if LEFT_THE_SCRIPT in hit.captures]


def _interrupts(around: Surroundings) -> list[Hit]:
    return [each for each in around.hits if each.error_type == "user_interrupt"]


def _exceptions(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(hit for hit in around.causes if _PYTHONS.search(hit.line.text) is not None)


def aborted_by_its_report(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The abort of a process in which NCCL had told of a lost peer: so torch ends its process.

    The shell's line and NCCL's carry the number of the process. They may stand in files of their own, or in
    one that was put together from two, so their order says nothing. A notice of srun on the same abort names
    only the host. It counts if no other abort is there.
    """
    if hit.role != "consequence":
        return None
    aborts = around.once(_aborts)
    if shell := _SHELL_SAW.search(hit.line.text):
        report = aborts.get((hit.line.node, shell[1]))
    elif srun := _SRUN_SAW.search(hit.line.text):
        hosts = {None if each is None else _host(each) for each in aborts.values()}
        report = next((each for each in aborts.values() if hosts == {srun[1]}), None)
    else:
        return None
    return None if report is None else beside(hit, NotRoot("echo of a report", report.line))


def _aborts(around: Surroundings) -> dict[tuple[str, str], Hit | None]:
    """The aborts that a shell saw, by node and number of the process, each with NCCL's report before it."""
    told: dict[tuple[str, str], Hit] = {}
    for each in around.hits:
        if family(each.error_type) == "comms" and (process := _OF_NCCL.search(each.line.text)):
            told.setdefault((each.line.node, process[2]), each)
    saw = ((each, _SHELL_SAW.search(each.line.text)) for each in around.hits)
    keys = [(each.line.node, shell[1]) for each, shell in saw if shell is not None]
    return {key: told.get(key) for key in keys}


def _host(report: Hit) -> str:
    process = _OF_NCCL.search(report.line.text)
    return process[1] if process is not None else ""


def of_teardown(hits: Sequence[Hit]) -> bool:
    """Whether all lines may come from processes that close after their work."""
    thrown = any(hit.rule == _THROWN for hit in hits)
    return all(_closes(hit) or (thrown and _names_what_was_thrown(hit)) for hit in hits)


def _closes(hit: Hit) -> bool:
    """Whether a process that closes may print the line.

    It is a crash, news of its end, or what a thread raised that still worked ahead. Ray tells so of workers
    whose driver left. Or the process did not close by itself: somebody asked it to, or its time was over.
    """
    vague = hit.error_type in ("exception", "unknown", "")
    told = hit.role == "consequence" or (hit.fallback and IN_A_THREAD in hit.captures)
    left = hit.role == "consequence" and hit.error_type == "ray_actor_died"
    ended = left or hit.error_type in ("native_crash", "cancelled") or hit.rule in _NEVER_CLOSED
    return (vague and told) or ended


def _names_what_was_thrown(hit: Hit) -> bool:
    """Whether it is NCCL's error that a destructor threw: its communicator or its peers had gone before."""
    return hit.role == "consequence" and hit.error_type == "nccl"
