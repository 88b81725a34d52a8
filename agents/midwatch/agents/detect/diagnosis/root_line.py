"""The root line: which of an attempt's lines proves why it ended. Pure.

One order over named features decides it, and the candidate with the lowest features is the root. The earliest
cause comes first, then the earliest consequence. Then the line counts that tells the same failure best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate
from midwatch.agents.detect.diagnosis.relations.echoes import without_echoes
from midwatch.agents.detect.diagnosis.relations.peer_exits import WAITED
from midwatch.agents.detect.diagnosis.same_failure import (
    first_of_the_jvm,
    first_of_the_ranks,
    innermost_entry,
    message_of,
    told_in_full,
)
from midwatch.agents.detect.line_order import earlier, in_order
from midwatch.streams.records import Hit, Rival

_END_CAPTURES = ("exit_code", "signal_name", "exception", "left_the_script")
_SHOWN = 15


class Features(NamedTuple):
    """What the order looks at, in its sequence. The lower value is the better root.

    A line with one of the first seven is no root, whatever else is there (`reasons`). `kindless` and
    `endless` count only for lines that follow and whose rule is general.
    """

    hedged: bool  # it only supposes or cites a failure, or its writer called it none
    handled: bool  # the program got over it, or had asked for it
    outlived: bool  # the job worked on behind it
    beside: bool  # it comes from code beside the training
    quoted: bool  # it is source code, or another entry of a stack or report
    closing: bool  # its process was ending already
    repeated: bool  # another line reports the same thing first-hand
    follows: bool  # it follows from another failure, or only announces one
    general: bool  # its rule knows only that something failed
    kindless: bool  # it names no kind of failure
    endless: bool  # it does not say how a process ended, as a launcher that stops the other ones
    time: float
    node: str
    path: str
    number: int
    untyped: bool  # of two rules on one line the one that knows the kind comes first
    undecided: bool  # and of two that know it the one that knows whether it may pass


_WORSE = {
    "follows": "a consequence",
    "general": "less specific",
    "kindless": "no kind",
    "endless": "no end",
}
"""The reason of a candidate for which no other line gave one, by the first feature in which it is worse."""


def features(candidate: RootCandidate) -> Features:
    """The features of a candidate."""
    hit = candidate.hit
    follows = hit.role != "cause" or _announces(hit)
    untyped = hit.error_type in ("exception", "unknown", "")
    kindless = follows and hit.fallback and untyped
    endless = kindless and not any(name in hit.captures for name in _END_CAPTURES)
    time, node, path, number = in_order(hit)
    aside = "" if candidate.reason is None else candidate.reason.feature
    return Features(
        hedged=aside == "hedged",
        handled=aside == "handled",
        outlived=aside == "outlived",
        beside=aside == "beside",
        quoted=aside == "quoted",
        closing=aside == "closing",
        repeated=aside == "repeated",
        follows=follows,
        general=hit.fallback,
        kindless=kindless,
        endless=endless,
        time=time,
        node=node,
        path=path,
        number=number,
        untyped=untyped,
        undecided=hit.transient is None,
    )


def precedence(hit: Hit) -> Features:
    """The features of a line by itself, before other lines are known: the lowest one comes first."""
    return features(RootCandidate(hit))


def _announces(hit: Hit) -> bool:
    """Whether the exception's message ends in a colon, as the announcement of an exception below it.

    So does a name in front of a message that begins on the next line. The colon in front of a list announces
    nothing, nor does that of an errno: a path follows, maybe wrapped to the next line.
    """
    if not hit.fallback or hit.error_type != "exception" or "lists" in hit.captures:
        return False
    message = message_of(hit) or hit.line.text.rstrip()
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
    ordered.sort(key=lambda pair: (pair[1].set_aside, keys[id(pair[1])]))
    if not ordered or ordered[0][1].set_aside:
        return RootChoice(None, tuple((each.hit, _own(each)) for _, each in ordered))
    best, first = ordered[0]
    eligible = [each.hit for _, each in ordered if not each.set_aside]
    eligible.sort(key=in_order)
    full = told_in_full(first.hit, eligible)
    deepest = first_of_the_jvm(innermost_entry(full, eligible), eligible)
    deepest = first_of_the_ranks(deepest, eligible)
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
    for feature, reason in _WORSE.items():
        if getattr(known, feature) != getattr(best, feature):
            return NotRoot(_of_follower(candidate.hit) if feature == "follows" else reason, line)
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
