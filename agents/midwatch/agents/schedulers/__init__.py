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
    from midwatch.streams.settings.schema import RaySettings

    MakeCluster = Callable[[str, Path, Caller, "RaySettings | None"], Cluster]


def _local(name: str, state_directory: Path, caller: Caller, _ray: RaySettings | None) -> Cluster:
    from midwatch.agents.schedulers.local.scheduler import LocalCluster

    return LocalCluster(name, state_directory, caller)


def _slurm(name: str, _state_directory: Path, caller: Caller, _ray: RaySettings | None) -> Cluster:
    from midwatch.agents.schedulers.slurm.scheduler import SlurmCluster

    return SlurmCluster(name, caller)


def _ray(name: str, _state_directory: Path, caller: Caller, ray: RaySettings | None) -> Cluster:
    from midwatch.agents.schedulers.ray.scheduler import RayCluster
    from midwatch.streams.services.ray_jobs import RayHead

    if ray is None or not ray.address:
        raise ConfigurationError(
            "the settings name no Ray head",
            where="ray.address",
            remedy="set it to the address of the head's dashboard, such as http://head:8265",
        )
    return RayCluster(name, RayHead(ray.address, ray.token.reveal()), caller, python=ray.python)


SCHEDULERS: Mapping[str, MakeCluster] = {"local": _local, "slurm": _slurm, "ray": _ray}
"""By kind, what makes the driver: of its name, the executor's state directory, the way to programs, the Ray
head."""


def cluster(
    kind: str, name: str, state_directory: Path, caller: Caller, ray: RaySettings | None = None
) -> Cluster:
    """The driver for a cluster of that kind; `name` is its name in jobs and specs.

    Raises:
        ConfigurationError: there is no driver for that kind, or the settings lack what it needs.
    """
    if kind not in SCHEDULERS:
        raise ConfigurationError(
            f"no driver for clusters of kind {kind!r}",
            where="clusters",
            remedy=f"use {' or '.join(SCHEDULERS)}",
        )
    return SCHEDULERS[kind](name, state_directory, caller, ray)
