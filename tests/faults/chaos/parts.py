"""The parts of `make chaos`: which tests play them, and what each must have hit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
_FAILPOINT = re.compile(r"""^\s*failpoint\("([a-z_]+)"\)""", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """`tests`: for pytest. `sources`: the folders of its failpoints. `faults`: what else must be hit."""

    tests: tuple[str, ...]
    sources: tuple[str, ...]
    faults: Callable[[], tuple[str, ...]] = tuple


def _of_the_agents() -> tuple[str, ...]:
    from faults.soak import faults

    return tuple(faults.name_of(fault) for fault in faults.ALL)


def _of_the_chain() -> tuple[str, ...]:
    from faults.chain.injections import INJECTIONS

    return tuple(INJECTIONS)


def _on_ray() -> tuple[str, ...]:
    return (
        "killed at random",
        "head killed",
        "head with Redis killed",
        "raylet killed",
        "stopped while pending",
    )


PARTS = {
    "agents": Part(
        ("tests/faults/soak/test_soak.py", "tests/faults/match"),
        ("streams/midwatch/streams",),
        _of_the_agents,
    ),
    "executor": Part(("tests/faults/executor",), ("agents/midwatch/agents/executor",)),
    "messages": Part(("tests/faults/messages",), ("agents/midwatch/agents/messages",)),
    "ray": Part(("tests/faults/ray",), ("agents/midwatch/agents/executor",), _on_ray),
    "chain": Part(("tests/faults/chain",), (), _of_the_chain),
    "shippers": Part(("tests/faults/shippers",), ("shippers/midwatch/shippers",)),
}


def failpoints(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Every failpoint that stands in these folders, as the code names them."""
    files = [file for source in sources for file in (TESTS.parent / source).rglob("*.py")]
    names = {name for file in files for name in _FAILPOINT.findall(file.read_text())}
    return tuple(f"failpoint {name}" for name in sorted(names))


def wanted(part: str) -> tuple[str, ...]:
    """All that a full run of the part must have hit at least once."""
    return (*failpoints(PARTS[part].sources), *PARTS[part].faults())
