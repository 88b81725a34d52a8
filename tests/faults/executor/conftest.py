"""A real executor on the session's Kafka and Redis."""

from __future__ import annotations

from executor_world import observing, world
from slurm_lab.fixture import slurm, slurm_cluster

__all__ = ["observing", "slurm", "slurm_cluster", "world"]
