"""The prefilter plan: which literals the scan looks for, and how they share the automata."""

from __future__ import annotations

from dataclasses import dataclass

from midwatch.rules.prefilter.triggers import Triggers


@dataclass(frozen=True, slots=True)
class PrefilterPlan:
    """The literals of a scan. To make a plan takes seconds; to set up a finished plan takes milliseconds.

    `rules` is the content hash of the plan's rules: with other rules the scan would miss hits. `packed` and
    `packed_lowered` hold the literals of each automaton, in order. `packed` is for the text as it is, and
    `packed_lowered` for the lower-cased text. `stops` is the plan for the rules' stop patterns.
    """

    rules: str
    triggers: Triggers
    packed: tuple[tuple[bytes, ...], ...]
    packed_lowered: tuple[tuple[bytes, ...], ...] = ()
    stops: PrefilterPlan | None = None
