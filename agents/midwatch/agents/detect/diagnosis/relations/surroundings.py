"""Surroundings: the lines beside a candidate, and what a relation asks of all of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from midwatch.agents.detect.diagnosis.candidates import RootCandidate
from midwatch.streams.records import Hit

T = TypeVar("T")


class Surroundings:
    """The lines beside a candidate. `hits`: causes and consequences. `noted`: context since the last step.

    `over`: nothing but these lines speaks of a failure, and no work is known to be left.
    """

    def __init__(self, hits: Sequence[Hit], noted: Sequence[Hit], *, over: bool) -> None:
        self.hits, self.noted, self.over = hits, noted, over
        self.causes = [hit for hit in hits if hit.role == "cause"]
        self._known: dict[Any, Any] = {}

    def once(self, asked: Callable[[Surroundings], T]) -> T:
        """What a relation asks of all lines, worked out once: thousands of ranks may speak at an end.

        `asked`: a named function; it is the key, so a new lambda for each call would find nothing again.
        """
        if asked not in self._known:
            self._known[asked] = asked(self)
        return cast("T", self._known[asked])


Relation = Callable[[Hit, Surroundings], "RootCandidate | None"]
"""It looks at one hit beside all lines: the candidate that it makes of the hit, or None."""
