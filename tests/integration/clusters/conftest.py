"""The lab's fixtures for the drivers' tests."""

from __future__ import annotations

from slurm_lab.fixture import slurm, slurm_cluster

__all__ = ["slurm", "slurm_cluster"]
