"""A job as a scheduler's saved record shows it."""

from __future__ import annotations

from typing import NamedTuple

from midwatch.agents.schedulers.base import StartState


class FailedLastStep(NamedTuple):
    """The end of the last step of a job that itself ended well. `only`: no other step ended well either."""

    state: StartState
    only: bool


class SavedJob(NamedTuple):
    """One job of a record. `names`: its ids, the one that people know first. `cluster`: slurm or ray.

    `failed_step`: what contradicts the job's own good end. A log that tells of a success outweighs it.
    """

    cluster: str
    names: tuple[str, ...]
    state: StartState
    failed_step: FailedLastStep | None = None
