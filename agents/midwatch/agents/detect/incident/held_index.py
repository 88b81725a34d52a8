"""What a turn asks of the held lines for each new line, counted once a record.

Hundreds of lines may be held, and a record of one node may hold as many new ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from midwatch.agents.detect.diagnosis.root_line import Features, precedence
from midwatch.agents.detect.diagnosis.same_failure import bare_name, tells_message_of
from midwatch.streams.records import Held, Hit

_step_of = attrgetter("step")
_place_of = attrgetter("rule", "line.rank", "line.node", "line.path")
_place_of_held = attrgetter("hit.rule", "hit.line.rank", "hit.line.node", "hit.line.path")


@dataclass(slots=True)
class HeldIndex:
    """An index of the very tuple `held`: it says nothing of another tuple, equal or not."""

    held: tuple[Held, ...] = ()
    least_step: int | None = None
    """The lowest step known when a held line came; None without held lines."""
    _places: Counter[tuple[object, ...]] = field(default_factory=Counter)
    _precedences: dict[int, Features] = field(default_factory=dict)
    """By the identity of a held line, so only of lines that are held."""
    _bare: dict[tuple[object, ...], list[Held]] | None = None
    """The exceptions without a message of each such place; None until somebody asks."""

    @classmethod
    def of(cls, held: tuple[Held, ...]) -> HeldIndex:
        """The index of these lines."""
        return cls(held, min(map(_step_of, held), default=None), Counter(map(_place_of_held, held)))

    def alike(self, hit: Hit) -> int:
        """How many held lines share rank, rule and file with the hit."""
        return self._places[_place_of(hit)]

    def bare_beside(self, hit: Hit) -> Held | None:
        """The last of several held lines that lack the message which the hit has, of the same place.

        Ranks that print at once part exceptions from their messages. One that is whole tells more.
        """
        if self._bare is None:
            self._bare = {}
            for each in self.held:
                if bare_name(each.hit):
                    self._bare.setdefault(_place_of_held(each), []).append(each)
        bare = self._bare.get(_place_of(hit), [])
        return bare[-1] if len(bare) > 1 and tells_message_of(hit, bare_name(bare[-1].hit)) else None

    def add(self, new: Held) -> None:
        """Hold one more line."""
        self.held, self._bare = (*self.held, new), None
        self.least_step = new.step if self.least_step is None else min(self.least_step, new.step)
        self._places[_place_of_held(new)] += 1

    def drop(self, gone: Sequence[Held]) -> None:
        """Hold these lines no longer."""
        names, self._bare = set(map(id, gone)), None
        self.held = tuple(each for each in self.held if id(each) not in names)
        self.least_step = min(map(_step_of, self.held), default=None)
        self._places.subtract(map(_place_of_held, gone))
        for name in names:
            self._precedences.pop(name, None)

    def by_precedence(self) -> list[Held]:
        """The held lines, the one that is most likely the root first."""
        return sorted(self.held, key=self._precedence)

    def _precedence(self, held: Held) -> Features:
        known = self._precedences.get(id(held))
        if known is None:
            known = self._precedences[id(held)] = precedence(held.hit)
        return known
