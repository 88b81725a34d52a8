"""A prefilter plan as the text of a file, so that a plan is made once for rules that many use. Pure."""

from __future__ import annotations

from typing import Any

import orjson

from midwatch.rules.prefilter.plan import PrefilterPlan
from midwatch.rules.prefilter.triggers import Triggers


def text_of_plan(plan: PrefilterPlan) -> bytes:
    """The plan as JSON. Its bytes are written as the characters of the same numbers."""
    return orjson.dumps(_written(plan), option=orjson.OPT_INDENT_2) + b"\n"


def plan_of_text(text: bytes) -> PrefilterPlan:
    """The plan that `text_of_plan` has written. Another text raises KeyError, TypeError or ValueError."""
    return _read(orjson.loads(text))


def _written(plan: PrefilterPlan) -> dict[str, Any]:
    chosen = plan.triggers
    return {
        "rules": plan.rules,
        "cost": chosen.cost,
        "folded": sorted(chosen.folded),
        "unguarded": chosen.unguarded,
        "spellings": _words(chosen.spellings),
        "lowered": _words(chosen.lowered),
        "packed": [_words(each) for each in plan.packed],
        "packed_lowered": [_words(each) for each in plan.packed_lowered],
        "of_pattern": [_words(each) for each in chosen.of_pattern],
        "stops": None if plan.stops is None else _written(plan.stops),
    }


def _read(fields: dict[str, Any]) -> PrefilterPlan:
    triggers = Triggers(
        spellings=_literals(fields["spellings"]),
        lowered=_literals(fields["lowered"]),
        folded=frozenset(fields["folded"]),
        unguarded=tuple(fields["unguarded"]),
        of_pattern=tuple(map(_literals, fields["of_pattern"])),
        cost=fields["cost"],
    )
    return PrefilterPlan(
        rules=fields["rules"],
        triggers=triggers,
        packed=tuple(map(_literals, fields["packed"])),
        packed_lowered=tuple(map(_literals, fields["packed_lowered"])),
        stops=None if fields["stops"] is None else _read(fields["stops"]),
    )


def _words(literals: tuple[bytes, ...]) -> list[str]:
    return [literal.decode("latin-1") for literal in literals]


def _literals(words: list[str]) -> tuple[bytes, ...]:
    return tuple(word.encode("latin-1") for word in words)
