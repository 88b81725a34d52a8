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


def joined(first: PrefilterPlan, behind: PrefilterPlan, rules: str) -> PrefilterPlan:
    """A plan for the rules of both, those of `behind` behind those of `first`. Takes milliseconds.

    `rules` is their content hash. The scan finds the same as one that was planned for all of them together.
    It takes a pass more, so it may be slower.
    """
    count = len(first.triggers.of_pattern)
    triggers = Triggers(
        spellings=(*first.triggers.spellings, *behind.triggers.spellings),
        lowered=(*first.triggers.lowered, *behind.triggers.lowered),
        folded=first.triggers.folded | {count + pattern for pattern in behind.triggers.folded},
        unguarded=(*first.triggers.unguarded, *(count + index for index in behind.triggers.unguarded)),
        of_pattern=(*first.triggers.of_pattern, *behind.triggers.of_pattern),
        cost=first.triggers.cost + behind.triggers.cost,
    )
    return PrefilterPlan(
        rules,
        triggers,
        (*first.packed, *behind.packed),
        (*first.packed_lowered, *behind.packed_lowered),
    )
