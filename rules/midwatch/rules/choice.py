"""What compiling takes its seconds for, as a value that may be kept: which literals are looked for, and how
they share the automata. A function of the rules, of the background and of the code in this package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from midwatch.rules.triggers import Triggers


@dataclass(frozen=True, slots=True)
class Choice:
    """`rules`: the content hash of the rules that it was made for, since for others it finds too little.
    `packed` and `packed_lowered`: the literals of each automaton over the text as it is and over the
    lower-cased text, in their order. `stops` is that of the rules' stop patterns.
    """

    rules: str
    triggers: Triggers
    packed: tuple[tuple[bytes, ...], ...]
    packed_lowered: tuple[tuple[bytes, ...], ...] = ()
    stops: Choice | None = None

    def to_bytes(self) -> bytes:
        """As JSON."""
        return orjson.dumps(_plain(self))

    @classmethod
    def from_bytes(cls, text: bytes) -> Choice:
        """What `to_bytes` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        return _read(orjson.loads(text))


def _plain(choice: Choice) -> dict[str, Any]:
    triggers = choice.triggers
    return {
        "rules": choice.rules,
        "spellings": _texts(triggers.spellings),
        "lowered": _texts(triggers.lowered),
        "folded": sorted(triggers.folded),
        "unguarded": triggers.unguarded,
        "of_pattern": [_texts(each) for each in triggers.of_pattern],
        "cost": triggers.cost,
        "packed": [_texts(each) for each in choice.packed],
        "packed_lowered": [_texts(each) for each in choice.packed_lowered],
        "stops": _plain(choice.stops) if choice.stops else None,
    }


def _read(plain: Any) -> Choice:
    triggers = Triggers(
        spellings=_spellings(plain["spellings"]),
        lowered=_spellings(plain["lowered"]),
        folded=frozenset(map(int, plain["folded"])),
        unguarded=tuple(map(int, plain["unguarded"])),
        of_pattern=tuple(map(_spellings, plain["of_pattern"])),
        cost=float(plain["cost"]),
    )
    stops = plain["stops"]
    return Choice(
        str(plain["rules"]),
        triggers,
        tuple(map(_spellings, plain["packed"])),
        tuple(map(_spellings, plain["packed_lowered"])),
        None if stops is None else _read(stops),
    )


def _texts(spellings: tuple[bytes, ...]) -> list[str]:
    return [each.decode("latin-1") for each in spellings]


def _spellings(texts: list[str]) -> tuple[bytes, ...]:
    return tuple(each.encode("latin-1") for each in texts)
