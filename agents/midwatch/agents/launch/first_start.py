"""The first start of a job on a foreign scheduler, found again by its key. Shell."""

from __future__ import annotations

import time
from pathlib import Path

from midwatch.agents.rulesets.extensions import PAGE
from midwatch.agents.schedulers.base import Cluster, ClusterUnreachable, StartSpec
from midwatch.agents.schedulers.calls import Caller
from midwatch.agents.schedulers.foreign import foreign_clusters
from midwatch.streams.errors import MidwatchError, ServiceUnreachable, UsageError
from midwatch.streams.settings.schema import ExtensionSettings

_SHOWN_S = 60.0
_LOOK_S = 0.2


class NotStarted(MidwatchError):
    """The job was not started."""


def scheduler_of(name: str, settings: ExtensionSettings, state_directory: Path, caller: Caller) -> Cluster:
    """The driver that the person asked for. Raises UsageError where the settings do not name it."""
    if name not in settings.schedulers:
        known = ", ".join(settings.schedulers) or "none"
        raise UsageError(
            f"the settings enable no scheduler {name!r}",
            where="--scheduler",
            remedy=f"extensions.schedulers names foreign ones (now {known}), see {PAGE}",
        )
    return foreign_clusters(settings, state_directory, caller)[name]


def check_absent(cluster: Cluster, incarnation: str) -> None:
    """Raises NotStarted if the scheduler has a job of that id, ServiceUnreachable if it does not answer."""
    state = cluster.state(incarnation)
    if state.kind == "unknown":
        raise ServiceUnreachable(f"{cluster.name} does not answer: {state.reason}", where=cluster.name)
    if state.kind != "absent":
        raise NotStarted(
            f"{cluster.name} has a job of that id, which is {state.word.lower()}",
            where=incarnation,
            remedy="choose another id, or none",
        )


def submit_first(cluster: Cluster, start: StartSpec, key: str) -> str:
    """Submits it once, lets it run, and returns its incarnation.

    Raises:
        NotStarted: the scheduler refused.
        ServiceUnreachable: it does not show the job; it may have been started all the same.
    """
    hint = cluster.submit_held(start, key)
    if hint.result == "unsent":
        raise ServiceUnreachable(f"the job was not started: {hint.text}", where=cluster.name)
    if hint.result == "refused":
        raise NotStarted(f"{cluster.name} refused the job: {hint.text}", where=start.cwd)
    deadline, why = time.monotonic() + _SHOWN_S, hint.text
    while time.monotonic() < deadline:
        try:
            jobs = cluster.find(key)
        except ClusterUnreachable as error:
            jobs, why = (), error.what
        for job in jobs:
            if job.state.kind == "held":
                cluster.release(job.incarnation, key)
            return job.incarnation
        time.sleep(_LOOK_S)
    raise ServiceUnreachable(
        f"{cluster.name} does not show the job within {_SHOWN_S:.0f} s; it may run all the same",
        where=cluster.name,
        remedy=f"look there before you start it again{f' ({why})' if why else ''}",
    )
