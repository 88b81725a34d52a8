"""Fixtures for a conftest to import: `slurm`, one cluster for all files, is cleared before each test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from house.parts import require
from kept_running import kept
from slurm_lab.lab import Lab
from slurm_lab.packages import ACCOUNTING, CONTROLLER, obtain


@contextmanager
def running(programs: dict[str, str], accounting: bool) -> Iterator[Lab]:
    """A cluster of three nodes; a visible skip where there can be none, in CI a failure."""
    reason = obtain(programs)
    require("a real SLURM", not reason, reason)
    lab = booted(accounting=accounting)
    try:
        yield lab
    finally:
        lab.close()


def booted(nodes: int = 3, accounting: bool = False, times: int = 3) -> Lab:
    """A cluster that is up. Its ports were free when they were chosen: where somebody has taken one since,
    it is tried again with others. Raises TimeoutError with the logs' ends.
    """
    # A short name: a socket's path may have 107 bytes.
    lab = Lab(Path(tempfile.mkdtemp(prefix="slurm-lab-")), nodes=nodes, accounting=accounting)
    try:
        lab.boot()
    except BaseException as failure:
        lab.close()
        if times > 1 and "Address already in use" in str(failure):
            return booted(nodes, accounting, times - 1)
        raise
    return lab


@pytest.fixture(scope="module")
def slurm_cluster(request: pytest.FixtureRequest) -> Lab:
    return kept(request, partial(running, CONTROLLER, accounting=False))


@pytest.fixture
def slurm(slurm_cluster: Lab) -> Lab:
    slurm_cluster.clear()
    return slurm_cluster


@pytest.fixture(scope="module")
def slurm_with_accounting(request: pytest.FixtureRequest) -> Lab:
    return kept(request, partial(running, CONTROLLER | ACCOUNTING, accounting=True))
