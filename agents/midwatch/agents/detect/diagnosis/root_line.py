"""The root line: which of an attempt's lines proves why it ended. Pure.

The earliest cause comes first, then the earliest consequence. Echoes of another failure do not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from midwatch.agents.detect.line_order import earlier, in_order
from midwatch.streams.lines.log_levels import is_quiet
from midwatch.streams.records import Hit

_EXCEPTION = re.compile(r"(?:^|[\s\])>:])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): (.+)$")
_BARE = re.compile(r"(?:^|[\s.])[A-Z]\w*(?:Error|Exception):?\s*$")
_END_CAPTURES = ("exit_code", "signal_name", "exception")


def _weight(hit: Hit) -> int:
    """The rank of a line as root; lower is better. Causes are 0 (specific) or 1 (fallback).

    Consequences are 2 (specific) or 3 (fallback). A fallback of unspecific type is 4, or 5 without a word on
    how the process ended.
    """
    if hit.role == "cause" and not _announces(hit):
        return int(hit.fallback)
    if not hit.fallback:
        return 2
    return 3 + (1 + _lacks_end(hit)) * _vague(hit)


def _announces(hit: Hit) -> bool:
    """Whether the exception's message ends in a colon, as the announcement of an exception below it.

    The colon of an errno announces nothing: a path follows, maybe wrapped to the next line.
    """
    if not hit.fallback or hit.error_type != "exception":
        return False
    message = _message(hit)
    return message.endswith(":") and not message.startswith("[Errno ")


def _vague(hit: Hit) -> bool:
    """Whether the error type is unspecific. Of two rules on one line the specific one comes first."""
    return hit.error_type in ("exception", "unknown", "")


def _lacks_end(hit: Hit) -> bool:
    """Whether the line does not say how a process ended, as a launcher that stops the other ones."""
    return not any(name in hit.captures for name in _END_CAPTURES)


def precedence(hit: Hit) -> tuple[int, tuple[float, str, str, int], bool]:
    """The sort key of root lines: the line with the lowest value is the root."""
    return _weight(hit), in_order(hit), _vague(hit)


def root_of(hits: Sequence[Hit]) -> Hit | None:
    """The root line: the earliest of the lines with the best rank, or None."""
    candidates = [h for h in hits if h.role in ("cause", "consequence") and not _cleaned_up(h, hits)]
    candidates = _without_echoes(candidates)
    root = min(candidates, key=precedence, default=None)
    return root and _innermost(_exception_of(root, candidates), candidates)


def _cleaned_up(hit: Hit, hits: Sequence[Hit]) -> bool:
    """Whether srun itself cancelled the step or killed its tasks, so that nobody else did.

    srun does so after a task of the step failed, or after a person interrupted srun at its terminal.
    """
    killed = hit.error_type == "host_oom" and hit.fallback
    if hit.subsystem != "slurm" or not (killed or hit.error_type == "cancelled"):
        return False
    if "id" in hit.captures and _ended_by_srun(hit.captures["id"], hits):
        return True
    return any(
        earlier(h.line, hit.line) and (h.error_type == "user_interrupt" or "task" in h.captures)
        for h in hits
        if h.subsystem in ("slurm", "user") and h.role == "consequence"
    )


def _ended_by_srun(step: str, hits: Sequence[Hit]) -> bool:
    """Whether srun itself ended the step: it reported a failed task and then the end of the step.

    If somebody else had ended the step before, srun would have reported that. The node's line about the
    cancel goes into the tasks' output, so neither its place nor its printed second shows the order.
    """
    of_srun = [hit for hit in hits if hit.subsystem == "slurm" and hit.role == "consequence"]
    for ended in of_srun:
        if ended.captures.get("ended") != step:
            continue
        above = [h for h in of_srun if h.line.file == ended.line.file and earlier(h.line, ended.line)]
        if any("task" in h.captures for h in above) and not any("aborted" in h.captures for h in above):
            return True
    return False


def _without_echoes(candidates: Sequence[Hit]) -> list[Hit]:
    """The hits without echoes: failures of a process that was ending for another reason.

    An echo is a fallback cause: a crash after a reported error, or an exception after an interrupt.
    """
    first: dict[tuple[str, str], Hit] = {}
    reported: dict[tuple[str, str], Hit] = {}
    for hit in sorted(candidates, key=in_order):
        first.setdefault(hit.line.file, hit)
        if hit.role == "consequence" and (not hit.fallback or hit.rule in _PEER_LEFT):
            reported.setdefault(hit.line.file, hit)
    return [hit for hit in candidates if not _is_echo(hit, first[hit.line.file], reported.get(hit.line.file))]


_PEER_LEFT = ("nccl_remote_error",)
"""Fallback rules after which a process ends itself, maybe by a crash."""


def _is_echo(hit: Hit, first: Hit, reported: Hit | None) -> bool:
    if not hit.fallback or hit.role != "cause":
        return False
    if hit.error_type == "native_crash":
        return reported is not None and earlier(reported.line, hit.line)
    interrupted = first.subsystem == "user" and speaker(first) == speaker(hit)
    return hit.error_type == "exception" and interrupted and earlier(first.line, hit.line)


def speaker(hit: Hit) -> tuple[int | None, int | None]:
    """The rank that wrote the line, as the configuration knows it and as the text claims it."""
    return (hit.line.rank, hit.line.claimed_rank)


def _exception_of(root: Hit, candidates: Sequence[Hit]) -> Hit:
    """The exception whose message the root repeats, or the wrapper's line that names a bare exception."""
    if _message(root) or is_quiet(root.line.text.encode()):
        return root
    if _BARE.search(root.line.text):
        name = root.line.text.rpartition(" ")[2].rpartition(".")[2].rstrip(":")
        wrapped = (h for h in candidates if h.captures.get("exception") == name)
        return next(wrapped, None) or _with_message(root, name, candidates)
    alike = (h for h in candidates if h.rule == root.rule and h.line.file == root.line.file)
    return next((h for h in alike if (message := _message(h)) and message in root.line.text), root)


def _with_message(root: Hit, name: str, candidates: Sequence[Hit]) -> Hit:
    """The same exception with its message. Ranks that print at once may part the two."""
    said = re.compile(rf"\b{re.escape(name)} *: *\S")
    alike = (h for h in candidates if h.rule == root.rule and h.line.file == root.line.file)
    near = (h for h in alike if 0 < h.line.number - root.line.number <= _MIXED_LINES)
    return next((h for h in near if said.search(h.line.text)), root)


_MIXED_LINES = 40  # lines in which ranks that print at once part an exception from its message
_STACK_LINES = 12  # the longest distance between two entries of a library's error stack


def _innermost(root: Hit, candidates: Sequence[Hit]) -> Hit:
    """The deepest entry of the root's error stack. Chunks may have brought several entries."""
    for hit in sorted(candidates, key=in_order):
        beside = hit.rule == root.rule and hit.line.file == root.line.file
        if not beside or not 0 < hit.line.number - root.line.number <= _STACK_LINES:
            continue
        if _depth(hit) == _depth(root) + 1 > 0:
            root = hit
    return root


def _depth(hit: Hit) -> int:
    return int(hit.captures.get("depth", "-2"))


def _message(hit: Hit) -> str:
    found = _EXCEPTION.search(hit.line.text)
    return found[1].strip() if found else ""
