"""The prefilter plan: which literals the scan looks for, and how they share the automata."""

from __future__ import annotations

from dataclasses import dataclass

from midwatch.rules.prefilter.triggers import Triggers


@dataclass(frozen=True, slots=True)
class PrefilterPlan:
    """To make a plan takes seconds; to match by a finished one takes milliseconds to set up.

    `rules` is the content hash of the rules that the plan is for: for others the scan would miss hits.
    `packed` and `packed_lowered` hold the literals of each automaton, in their order: first those for the
    text as it is, then those for the lower-cased text. `stops` is the plan of the rules' stop patterns.
    """

    rules: str
    triggers: Triggers
    packed: tuple[tuple[bytes, ...], ...]
    packed_lowered: tuple[tuple[bytes, ...], ...] = ()
    stops: PrefilterPlan | None = None
