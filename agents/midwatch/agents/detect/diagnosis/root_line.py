"""The root line: which of an attempt's lines proves why it ended. Pure.

One order over named features decides it, and the candidate with the lowest features is the root. The earliest
cause comes first, then the earliest consequence. Then the line counts that tells the same failure best.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate
from midwatch.agents.detect.diagnosis.echoes import without_echoes
from midwatch.agents.detect.diagnosis.peer_exits import WAITED
from midwatch.agents.detect.line_order import earlier, in_order
from midwatch.streams.lines.log_levels import is_quiet
from midwatch.streams.records import Hit, Rival

_EXCEPTION = re.compile(r"(?:^|[\s\])>:])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): (.+)$")
_BARE = re.compile(r"(?:^|[\s.])[A-Z]\w*(?:Error|Exception):?\s*$")
_END_CAPTURES = ("exit_code", "signal_name", "exception")
_SHOWN = 15


class Features(NamedTuple):
    """What the order looks at, in its sequence. The lower value is the better root.

    `kindless` and `endless` count only for lines that follow and whose rule is general.
    """

    set_aside: bool  # another line shows that this one cannot be the root
    follows: bool  # it follows from another failure, or only announces one
    general: bool  # its rule knows only that something failed
    kindless: bool  # it names no kind of failure
    endless: bool  # it does not say how a process ended, as a launcher that stops the other ones
    time: float
    node: str
    path: str
    number: int
    untyped: bool  # of two rules on one line the one that knows the kind comes first


_REASONS = ("", "a consequence", "less specific", "no kind", "no end")
"""The reasons of the first features, by their places."""


def features(candidate: RootCandidate) -> Features:
    """The features of a candidate."""
    hit = candidate.hit
    follows = hit.role != "cause" or _announces(hit)
    untyped = hit.error_type in ("exception", "unknown", "")
    kindless = follows and hit.fallback and untyped
    endless = kindless and not any(name in hit.captures for name in _END_CAPTURES)
    place = in_order(hit)
    return Features(candidate.set_aside, follows, hit.fallback, kindless, endless, *place, untyped=untyped)


def precedence(hit: Hit) -> Features:
    """The features of a line by itself, before other lines are known: the lowest one comes first."""
    return features(RootCandidate(hit))


def _announces(hit: Hit) -> bool:
    """Whether the exception's message ends in a colon, as the announcement of an exception below it.

    The colon of an errno announces nothing: a path follows, maybe wrapped to the next line.
    """
    if not hit.fallback or hit.error_type != "exception":
        return False
    message = _message(hit)
    return message.endswith(":") and not message.startswith("[Errno ")


@dataclass(frozen=True, slots=True)
class RootChoice:
    """The root line, and every other candidate with the one reason why it is not the root."""

    root: Hit | None
    others: tuple[tuple[Hit, NotRoot], ...] = ()

    def told_by(self, hit: Hit | None, name: str) -> RootChoice:
        """The choice with another line that tells the root's failure better. `name`: of the reason."""
        if hit is self.root or hit is None:
            return self
        before = () if self.root is None else ((self.root, NotRoot(name, hit.line)),)
        return RootChoice(hit, (*before, *self.others))

    def without_root(self, name: str) -> tuple[tuple[Hit, NotRoot], ...]:
        """All candidates, where no line is the root after all. `name`: of the reason for the first one."""
        return self.others if self.root is None else ((self.root, NotRoot(name)), *self.others)


def root_of(hits: Sequence[Hit]) -> Hit | None:
    """The root among lines of which nothing else is known, or None."""
    return choose([RootCandidate(hit) for hit in hits if hit.role in ("cause", "consequence")]).root


Order = Callable[[RootCandidate], tuple[Any, ...]]


def choose(candidates: Sequence[RootCandidate], order: Order = features) -> RootChoice:
    """The root: the candidate with the lowest features, or the line that tells the same failure best.

    `order`: another sort key, for a comparison. Lines that are set aside come last in any order.
    """
    ordered = [(features(candidate), candidate) for candidate in without_echoes(candidates)]
    keys = {id(each): known if order is features else order(each) for known, each in ordered}
    ordered.sort(key=lambda pair: (pair[0].set_aside, keys[id(pair[1])]))
    if not ordered or ordered[0][0].set_aside:
        return RootChoice(None, tuple((each.hit, _own(each)) for _, each in ordered))
    best, first = ordered[0]
    eligible = [each.hit for known, each in ordered if not known.set_aside]
    eligible.sort(key=in_order)
    full = _exception_of(first.hit, eligible)
    deepest = _first_of_the_jvm(_innermost(full, eligible), eligible)
    choice = RootChoice(
        first.hit,
        tuple(
            (each.hit, _reason(known, each, best, first.hit))
            for known, each in ordered[1:]
            if each.hit is not full and each.hit is not deepest
        ),
    )
    return choice.told_by(full, "told in full").told_by(deepest, "outer entry")


def _own(candidate: RootCandidate) -> NotRoot:
    assert candidate.reason is not None  # noqa: S101  # a line is set aside with its reason
    return candidate.reason


def _reason(known: Features, candidate: RootCandidate, best: Features, first: Hit) -> NotRoot:
    """Why a candidate is not the root: what set it aside, or the first feature in which it is worse."""
    if candidate.reason is not None:
        return candidate.reason
    line = first.line
    for mine, its, name in zip(known, best, _REASONS, strict=False):
        if mine != its:
            return NotRoot(_of_follower(candidate.hit) if name == "a consequence" else name, line)
    if candidate.hit.line.file == line.file and candidate.hit.line.number == line.number:
        return NotRoot("same line", line)
    return NotRoot("later" if earlier(line, candidate.hit.line) else "same time", line)


def _of_follower(hit: Hit) -> str:
    """The reason of a line that follows, where the root is a cause."""
    if hit.role == "cause":
        return "an announcement"
    if hit.error_type in WAITED:
        return "a wait"
    tells_end = any(name in hit.captures for name in _END_CAPTURES)
    return "a summary" if hit.fallback and tells_end else "a consequence"


def rivals(others: Sequence[tuple[Hit, NotRoot]], root: Hit | None) -> tuple[Rival, ...]:
    """The first other candidate of each rule and reason, with the count of those like it; at most 15."""
    found: dict[tuple[str, str], Rival] = {}
    for hit, reason in others:
        kind, line = (hit.rule, reason.name), hit.line
        if kind in found:
            found[kind] = replace(found[kind], more=found[kind].more + 1)
        elif len(found) < _SHOWN and (root is None or (hit.rule, line) != (root.rule, root.line)):
            rank = line.rank if line.rank is not None else line.claimed_rank
            found[kind] = Rival(hit.rule, line.path, line.number, reason.sentence(line), line.node, rank)
    return tuple(found.values())


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
    for hit in candidates:
        beside = hit.rule == root.rule and hit.line.file == root.line.file
        if not beside or not 0 < hit.line.number - root.line.number <= _STACK_LINES:
            continue
        if _depth(hit) == _depth(root) + 1 > 0:
            root = hit
    return root


_OF_THE_JVM = re.compile(r"\b(?:[a-z_]\w*\.)+[A-Z][\w$]*(?:Exception|Error)\b")
_JVM_FRAMES = 150  # the longest stack between an exception of the JVM and what caused it


def _first_of_the_jvm(root: Hit, candidates: Sequence[Hit]) -> Hit:
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


def _depth(hit: Hit) -> int:
    return int(hit.captures.get("depth", "-2"))


def _message(hit: Hit) -> str:
    found = _EXCEPTION.search(hit.line.text)
    return found[1].strip() if found else ""
