"""`make test` plays every case once: how often each was hit is told at its end, and one never hit fails it.

The processes of a run write into one tally, which the first of them reads. A run of some tests alone is told
too, and not judged.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from faults.chaos import report, tally
from faults.chaos.parts import PARTS


def begin() -> Path | None:
    """The tally of this run; None where somebody else keeps it, or in a process that only plays."""
    if tally.FILE in os.environ or "PYTEST_XDIST_WORKER" in os.environ:
        return None
    handle, name = tempfile.mkstemp(prefix="midwatch-tally-")
    os.close(handle)
    os.environ[tally.FILE] = name
    return Path(name)


def whole_suite(config: pytest.Config) -> bool:
    """Whether nothing was left out by the command line."""
    # Names of pytest's own options: each of them plays less than everything.
    left_out = ("keyword", "markexpr", "maxfail", "lf", "collectonly", "deselect")
    everything = list(config.args) == config.getini("testpaths")
    return everything and not any(config.getoption(name, None) for name in left_out)


def end(kept: Path) -> tuple[str, list[str]]:
    """The table of hits, empty where no case was played, and what was never hit. The tally is gone."""
    whole: report.Whole = {"cases": tally.read(kept)}
    kept.unlink()
    os.environ.pop(tally.FILE, None)
    return report.hits_table(whole) if whole["cases"] else "", report.never_hit(whole, tuple(PARTS))
