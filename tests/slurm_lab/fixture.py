"""Fixtures for a conftest to import: `slurm`, one cluster a session, is cleared before each test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from house.parts import require
from slurm_lab.lab import Lab
from slurm_lab.packages import ACCOUNTING, CONTROLLER, obtain


def boot(programs: dict[str, str], accounting: bool) -> Iterator[Lab]:
    """A cluster of three nodes; a visible skip where there can be none, in CI a failure."""
    reason = obtain(programs)
    require("a real SLURM", not reason, reason)
    directory = Path(tempfile.mkdtemp(prefix="slurm-lab-"))  # short: a socket's path may have 107 bytes
    lab = Lab(directory, accounting=accounting)
    try:
        lab.boot()
        yield lab
    finally:
        lab.close()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[Lab]:
    yield from boot(CONTROLLER, accounting=False)


@pytest.fixture
def slurm(slurm_cluster: Lab) -> Lab:
    slurm_cluster.clear()
    return slurm_cluster


@pytest.fixture(scope="module")
def slurm_with_accounting() -> Iterator[Lab]:
    yield from boot(CONTROLLER | ACCOUNTING, accounting=True)
