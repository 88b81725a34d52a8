"""The drivers of schedulers, all behind the protocol `base.Cluster`. Register a new driver here.

A driver loads on first use: the shim of a local job lives in this package too, and must start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from midwatch.streams.errors import ConfigurationError

if TYPE_CHECKING:
    from midwatch.agents.schedulers.base import Cluster
    from midwatch.agents.schedulers.calls import Caller

    MakeCluster = Callable[[str, Path, Caller], Cluster]


def _local(name: str, state_directory: Path, caller: Caller) -> Cluster:
    from midwatch.agents.schedulers.local.scheduler import LocalCluster

    return LocalCluster(name, state_directory, caller)


def _slurm(name: str, _state_directory: Path, caller: Caller) -> Cluster:
    from midwatch.agents.schedulers.slurm.scheduler import SlurmCluster

    return SlurmCluster(name, caller)


SCHEDULERS: Mapping[str, MakeCluster] = {"local": _local, "slurm": _slurm}
"""By kind, what makes the driver: of its name, the executor's state directory, and the way to programs."""


def cluster(kind: str, name: str, state_directory: Path, caller: Caller) -> Cluster:
    """The driver for a cluster of that kind; `name` is its name in jobs and specs.

    Raises:
        ConfigurationError: there is no driver for that kind.
    """
    if kind not in SCHEDULERS:
        raise ConfigurationError(
            f"no driver for clusters of kind {kind!r}",
            where="clusters",
            remedy=f"use {' or '.join(SCHEDULERS)}",
        )
    return SCHEDULERS[kind](name, state_directory, caller)
