"""The whole match worker of another version of the sources, measured beside this one in turns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOTS = ("streams", "rules", "agents", "shippers", "tests")
_HERE = Path(__file__).parents[2]
# Runs in either tree, so it uses what both have.
_MEASURE = """
import sys
from bench.match import SHIPPED, as_a_worker, chunks_of
from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.prefilter.workloads import WORKLOADS
rules = compile_rules(load_bundle(SHIPPED).rules)
size = int(float(sys.argv[2]) * 1e6)
chunks = chunks_of(WORKLOADS[sys.argv[1]](size), size)
print(max(as_a_worker(rules, chunks) for _ in range(3)))
"""


def beside(other: Path, workload: str, megabytes: float, turns: int) -> tuple[float, float]:
    """Megabytes a second of the worker of this tree and of the other one: the best of `turns` each.

    Each turn runs one process for each tree, so that a busy machine slows both alike.
    """
    best = {_HERE: 0.0, other: 0.0}
    for _ in range(turns):
        best = {tree: max(known, _speed(tree, workload, megabytes)) for tree, known in best.items()}
    return best[_HERE], best[other]


def version_of(tree: Path) -> str:
    """The commit of a tree."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=tree, check=True, capture_output=True, text=True
    )  # fmt: skip
    return done.stdout.strip()


def _speed(tree: Path, workload: str, megabytes: float) -> float:
    path = os.pathsep.join(str(tree / root) for root in _ROOTS)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, workload, str(megabytes)],
        cwd=tree, env=os.environ | {"PYTHONPATH": path}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(done.stdout.split()[-1])
