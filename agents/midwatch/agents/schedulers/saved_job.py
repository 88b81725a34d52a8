"""A job as a scheduler's saved record shows it."""

from __future__ import annotations

from typing import NamedTuple

from midwatch.agents.schedulers.base import StartState


class SavedJob(NamedTuple):
    """One job of a record. `names`: its ids, the one that people know first. `cluster`: slurm or ray."""

    cluster: str
    names: tuple[str, ...]
    state: StartState
