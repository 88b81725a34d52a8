"""The same failure, told by several lines: which of them tells it best. Pure.

Each function takes the root that the order names and the candidates by time. It gives the line that counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from midwatch.streams.lines.log_levels import is_quiet
from midwatch.streams.records import Hit

_EXCEPTION = re.compile(r"(?:^|[\s\])>:])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): (.+)$")
_BARE = re.compile(r"(?:^|[\s.^~])([A-Z]\w*(?:Error|Exception)):?\s*$")
_MIXED_LINES = 40  # lines in which ranks that print at once part an exception from its message
_STACK_LINES = 12  # the longest distance between two entries of a library's error stack
_OF_THE_JVM = re.compile(r"\b(?:[a-z_]\w*\.)+[A-Z][\w$]*(?:Exception|Error)\b")
_RANK_S_FRAMES = 80  # the longest stack of one rank in that list
_JVM_FRAMES = 150  # the longest stack between an exception of the JVM and what caused it


def told_in_full(root: Hit, candidates: Sequence[Hit]) -> Hit:
    """The exception whose message the root repeats, or the wrapper's line that names a bare exception.

    Ray prints the task that waited for a dead actor above its own words on that actor.
    """
    if root.rule == "ray_task_actor_died":
        alike = (h for h in candidates if h.error_type == root.error_type and h.rule != root.rule)
        return next((h for h in alike if h.line.file == root.line.file), root)
    if message_of(root) or is_quiet(root.line.text.encode()):
        return root
    if name := bare_name(root):
        wrapped = (h for h in candidates if h.captures.get("exception") == name)
        return next(wrapped, None) or _withmessage_of(root, name, candidates)
    alike = (h for h in candidates if h.rule == root.rule and h.line.file == root.line.file)
    return next((h for h in alike if (message := message_of(h)) and message in root.line.text), root)


def bare_name(hit: Hit) -> str:
    """The exception's name in which the line ends; "" if it has a message. That may stand elsewhere."""
    found = _BARE.search(hit.line.text)
    return "" if found is None else found[1]


def tells_message_of(hit: Hit, name: str) -> bool:
    """Whether the line has a message of that exception."""
    return re.search(rf"\b{re.escape(name)} *: *\S", hit.line.text) is not None


def _withmessage_of(root: Hit, name: str, candidates: Sequence[Hit]) -> Hit:
    """The same exception with its message. Ranks that print at once may part the two."""
    alike = (h for h in candidates if h.role == root.role and h.line.file == root.line.file)
    near = (h for h in alike if 0 < h.line.number - root.line.number <= _MIXED_LINES)
    return next((h for h in near if tells_message_of(h, name)), root)


def innermost_entry(root: Hit, candidates: Sequence[Hit]) -> Hit:
    """The deepest entry of the root's error stack. Chunks may have brought several entries."""
    for hit in candidates:
        beside = hit.rule == root.rule and hit.line.file == root.line.file
        if not beside or not 0 < hit.line.number - root.line.number <= _STACK_LINES:
            continue
        if _depth(hit) == _depth(root) + 1 > 0:
            root = hit
    return root


def first_of_the_jvm(root: Hit, candidates: Sequence[Hit]) -> Hit:
    """The innermost cause of a JVM's exception. Its stack trace prints the outer exception first."""
    if not root.fallback or root.error_type != "exception" or not _OF_THE_JVM.search(root.line.text):
        return root
    for hit in candidates:
        if hit.line.file != root.line.file or hit.line.number <= root.line.number:
            continue
        if hit.rule != "java_caused_by" or hit.line.number - root.line.number > _JVM_FRAMES:
            break
        root = hit
    return root


def first_of_the_ranks(root: Hit, candidates: Sequence[Hit]) -> Hit:
    """What the first rank met, where the root is PyTorch's list of the ranks that could not save or load."""
    if root.rule != "checkpoint_parallel_errors":
        return root
    for hit in candidates:
        behind = hit.line.file == root.line.file and hit.line.number > root.line.number
        if behind and hit.rule != root.rule:
            return hit if hit.line.number - root.line.number <= _RANK_S_FRAMES else root
    return root


def _depth(hit: Hit) -> int:
    return int(hit.captures.get("depth", "-2"))


def message_of(hit: Hit) -> str:
    found = _EXCEPTION.search(hit.line.text)
    return found[1].strip() if found else ""
