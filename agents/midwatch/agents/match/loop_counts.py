"""How far a loop is that prints no step, as a progress record says it."""

from __future__ import annotations

from collections.abc import Mapping


def count_of(captures: Mapping[str, str]) -> str:
    """The batch behind its epoch, since it counts anew in each, or the one of them that the line gives."""
    batch = captures.get("batch") or captures.get("count", "")
    return ":".join(part for part in (captures.get("epoch", ""), batch) if part)
