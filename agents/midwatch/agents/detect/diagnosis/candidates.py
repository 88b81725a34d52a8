"""A candidate: a line that may be the root, with what other lines make of it. Pure.

Every candidate but the root has one reason why it is not the root, see `reasons`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from midwatch.agents.detect.diagnosis.reasons import REASONS, SET_ASIDE, Feature
from midwatch.streams.records import Hit, Line


@dataclass(frozen=True, slots=True)
class NotRoot:
    """Why a candidate is not the root. `name` is a key of `REASONS`; `line` is the line that shows it."""

    name: str
    line: Line | None = None

    @property
    def feature(self) -> Feature:
        """The feature of the order in which the candidate is worse."""
        return REASONS[self.name].feature

    def sentence(self, of: Line) -> str:
        """The reason in plain words, with the place of the line that shows it as seen from the candidate."""
        return REASONS[self.name].sentence.format(line="" if self.line is None else _place(self.line, of))


def _place(line: Line, seen_from: Line) -> str:
    if line.file == seen_from.file:
        return f"line {line.number}"
    node = f" of {line.node}" if line.node != seen_from.node else ""
    return f"{line.path}:{line.number}{node}"


@dataclass(frozen=True, slots=True)
class RootCandidate:
    """A line that may be the root.

    `hit`: with the role that other lines leave it. `reason`: why they changed it, None if they did not.
    """

    hit: Hit
    reason: NotRoot | None = None

    @property
    def set_aside(self) -> bool:
        """Whether the line cannot be the root, whatever else is there."""
        return self.reason is not None and self.reason.feature in SET_ASIDE


def beside(hit: Hit, reason: NotRoot) -> RootCandidate:
    """The line as one that ended nothing. It is no evidence either."""
    return RootCandidate(replace(hit, role="context"), reason)


def standing_aside(noted: Sequence[Hit]) -> list[RootCandidate]:
    """The noted lines that would be candidates if they reported what their rules look for."""
    return [RootCandidate(hit, NotRoot(hit.aside)) for hit in noted if hit.aside in REASONS]


def consequence(hit: Hit, reason: NotRoot) -> RootCandidate:
    """The line as the consequence of another one. Nothing then shows that a restart would succeed."""
    return RootCandidate(replace(hit, role="consequence", transient=None), reason)


def speaker(hit: Hit) -> tuple[int | None, int | None]:
    """The rank that wrote the line, as the configuration knows it and as the text claims it."""
    return (hit.line.rank, hit.line.claimed_rank)
