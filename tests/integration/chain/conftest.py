"""The chain runs on the session's Kafka and Redis, and on a real SLURM where one can be had."""

from __future__ import annotations

from slurm_lab.fixture import slurm, slurm_cluster

__all__ = ["slurm", "slurm_cluster"]
