"""What becomes of the jobs that wait for the good end of a job that was started again. Shell.

SLURM lets them wait for ever: the old start has failed, and nothing tells them of the new one. A job that its
user started with `midwatch run --follow` is pointed at the new start. Of all others the records say it.
"""

from __future__ import annotations

from midwatch.agents.executor.consumer import Desk, armed
from midwatch.agents.reporter import say
from midwatch.agents.schedulers.base import Cluster, DependentJob, KnowsDependents
from midwatch.agents.watcher.census import JobStart
from midwatch.streams.records import SchedulerFact, Spec
from midwatch.streams.records.identity import native_id


def point_dependents(desk: Desk, cluster: Cluster, restarted: Spec, old: str, new: str) -> str:
    """Points the dependents of `old` at `new` where it may; returns what became of all, "" without any.

    `old` and `new` are native ids. Each dependent that is watched gets a record. Harmless when repeated.

    Raises:
        ClusterUnreachable: the scheduler does not show who waits.
    """
    if not isinstance(cluster, KnowsDependents):
        return ""
    starts = {native_id(start.incarnation): start for start in desk.census.starts(cluster.kind)}
    texts = []
    for dependent in cluster.dependents(old):
        start = starts.get(dependent.native_id)
        text = _pointed(desk, cluster, restarted, dependent, start, old=old, new=new)
        texts.append(text)
        if start is not None:
            desk.reporter.event(_fact(cluster, start, text))
        else:
            say(f"{restarted.job}: {text}")
    return "; ".join(texts)


def _pointed(
    desk: Desk,
    cluster: KnowsDependents,
    restarted: Spec,
    dependent: DependentJob,
    start: JobStart | None,
    *,
    old: str,
    new: str,
) -> str:
    waits = f"job {dependent.native_id} waits for {old}, which was started again as {new}"
    remedy = cluster.repointing(dependent, old, new)
    if not remedy:
        return f"{waits}; it names the whole array, so it never runs"
    if why := _may_not(desk, restarted, dependent, start):
        return f"{waits}: {why}; `{' '.join(remedy)}` lets it wait for {new}"
    hint = cluster.repoint(remedy)
    if hint.result != "done":
        return f"{waits}: it could not be pointed there: {hint.text}"
    return f"job {dependent.native_id} waited for {old}, and now waits for {new}"


def _may_not(desk: Desk, restarted: Spec, dependent: DependentJob, start: JobStart | None) -> str:
    """Why midwatch leaves the dependent alone; "" if it may point it at the new start."""
    spec = desk.census.spec_of(start.job) if start is not None else None
    if start is None or spec is None or not spec.follow:
        return "it was not started with `midwatch run --follow`"
    if not desk.verifier.accepts(spec):
        return "its spec is not signed by this installation's key"
    if len({spec.user, restarted.user, dependent.user}) > 1:
        return f"it belongs to {dependent.user}"
    arming = armed(desk, start.job, armed_by_spec=True)
    return "" if arming.armed else arming.reason


def _fact(cluster: Cluster, start: JobStart, reason: str) -> SchedulerFact:
    return SchedulerFact(
        job=start.job,
        incarnation=start.incarnation,
        native_id=native_id(start.incarnation),
        old="PENDING",
        new="PENDING",
        ended=False,
        reason=reason,
        cluster=cluster.name,
    )
