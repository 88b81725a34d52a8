"""Which files of tests go to one process of pytest-xdist, and which of them begin first.

Files whose tests share a SLURM or a Ray head share a process, so it is started once and ends after them. The
longest files begin first, so that no process ends long after the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

TOGETHER: dict[str, tuple[str, ...]] = {
    "chains on SLURM": ("tests/integration/chain/test_slurm",),
    "executors on SLURM": (
        "tests/integration/executor/test_slurm.py",
        "tests/integration/executor/test_sbatch.py",
        "tests/integration/clusters/test_slurm.py",
        "tests/faults/executor/test_killed_on_slurm.py",
        "tests/faults/upgrade/test_earlier_job_on_slurm.py",
    ),
    "Ray": ("tests/faults/ray/", "tests/integration/ray/"),
}
"""By what they share: the files whose path begins so."""

FIRST: tuple[str, ...] = (
    "tests/faults/chain/test_rescues_under_fire.py",
    "tests/faults/soak/test_soak.py",
    "executors on SLURM",
    "chains on SLURM",
    "Ray",
    "tests/integration/chain/test_silence.py",
    "tests/integration/recording/test_recordings.py",
    "tests/faults/executor/test_killed.py",
    "tests/integration/chain/test_settling.py",
    "tests/faults/shippers/test_broker_away.py",
    "tests/integration/up/test_up.py",
    "tests/integration/demo/test_demo.py",
    "tests/faults/soak/test_mutants.py",
    "tests/integration/observe/test_real_prometheus.py",
    "tests/fuzz/test_matching.py",
)
"""The longest first; all others follow in the order of their names."""


def turn_of(node_id: str) -> str:
    """What runs in one process: the name of a row of TOGETHER, else the test's file."""
    file = node_id.partition("::")[0]
    return next((name for name, begins in TOGETHER.items() if file.startswith(begins)), file)


def seconds(reports: Iterable[Any]) -> dict[str, float]:
    """How long the turns of TOGETHER took, by the durations in pytest's reports. The longest first."""
    found: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        if (turn := turn_of(getattr(report, "nodeid", ""))) in TOGETHER:
            found[turn] += getattr(report, "duration", 0.0)
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """The items turn by turn, the longest turns first; within a turn their order stays."""
    known: dict[str, int] = {name: place for place, name in enumerate(FIRST)}
    for item in items:
        known.setdefault(turn_of(item.nodeid), len(known))
    return sorted(items, key=lambda item: known[turn_of(item.nodeid)])


def scheduler_of(config: pytest.Config, log: Any) -> Any:
    """The scheduler of `--dist loadfile`, whose scopes are turns; None for another way to distribute."""
    from xdist.scheduler import LoadFileScheduling

    if config.getoption("dist") != "loadfile":
        return None
    made: Any = LoadFileScheduling(config, log)
    made._split_scope = turn_of
    return made
