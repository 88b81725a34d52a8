"""The configurations of this folder, written after the schema of each generation."""

from __future__ import annotations

from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"


def files() -> dict[str, bytes]:
    """All of them, by their path from the folder of fixtures."""
    return {p.relative_to(FIXTURES).as_posix(): p.read_bytes() for p in sorted(FIXTURES.rglob("*.yaml"))}
