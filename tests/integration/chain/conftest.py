"""The chain runs on the session's Kafka and Redis, and on a real SLURM where one can be had."""

from __future__ import annotations

import pytest

from integration.chain.installation import Installation
from integration.chain.slurm_training import slurm_installation
from kept_running import kept
from midwatch.agents.local.embedded.stack import Endpoints
from slurm_lab.fixture import slurm, slurm_cluster
from slurm_lab.lab import Lab

__all__ = ["slurm", "slurm_cluster"]


@pytest.fixture(scope="module")
def watch_on_slurm(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    stack: Endpoints,
    slurm_cluster: Lab,
) -> Installation:
    """One midwatch for the jobs of all files on SLURM."""
    return kept(request, lambda: slurm_installation(tmp_path_factory.mktemp("watch"), stack, slurm_cluster))
