"""The lab's fixtures for the drivers' tests."""

from __future__ import annotations

from slurm_lab.fixture import slurm, slurm_cluster, slurm_with_accounting

__all__ = ["slurm", "slurm_cluster", "slurm_with_accounting"]
