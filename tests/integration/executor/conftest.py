"""A real executor on the session's Kafka and Redis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from executor_world import World, observing, world
from midwatch.agents.local.embedded.stack import Endpoints
from slurm_lab.fixture import slurm, slurm_cluster, slurm_with_accounting
from slurm_lab.lab import Lab

__all__ = ["observing", "slurm", "slurm_cluster", "slurm_with_accounting", "world"]


@pytest.fixture
def cluster(slurm: Lab, tmp_path: Path, stack: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An executor's installation whose tools talk to the lab."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.environment[name])
    made = World(
        tmp_path, stack, environment={name: slurm.environment[name] for name in ("SLURM_CONF", "PATH")}
    )
    yield made
    made.close()
