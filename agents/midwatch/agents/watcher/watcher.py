"""Looks at the schedulers again and again and writes every change to `events`, in its own thread. Shell."""

from __future__ import annotations

import pwd
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from midwatch.agents.reporter import Reporter, say
from midwatch.agents.schedulers.base import Cluster, ClusterUnreachable, StartState
from midwatch.agents.watcher.cancellation_notes import cancellation_of
from midwatch.agents.watcher.census import JobStart
from midwatch.agents.watcher.census_reader import CensusReader
from midwatch.agents.watcher.drain import LastWords
from midwatch.agents.watcher.saved import RunningLooks, saved_by
from midwatch.agents.watcher.sightings import SchedulerSweep, WatcherMemory, facts, questions
from midwatch.streams.records import SchedulerFact
from midwatch.streams.records.identity import native_id

LOCAL_POLL_S = 0.5
_UID = "uid "
_RUNNING = "RUNNING"


class Watcher(threading.Thread):
    """One thread looks at all clusters in turn; a slow scheduler gets fewer looks, never two at once."""

    def __init__(
        self,
        clusters: Iterable[Cluster],
        census: CensusReader,
        reporter: Reporter,
        *,
        state_directory: Path,
        poll_s: float,
        jobs_by_key: Callable[[], Mapping[str, str]],
        last_words: LastWords | None = None,
        looks: Callable[[], RunningLooks] = RunningLooks,
    ) -> None:
        super().__init__(name="watcher", daemon=True)
        self._clusters = tuple(clusters)
        self._census = census
        self._reporter = reporter
        self._state_directory = state_directory
        self._poll_s = poll_s
        self._jobs_by_key = jobs_by_key
        self._last_words = last_words
        self._looks = {cluster.name: looks() for cluster in self._clusters}
        self._watched: dict[str, WatcherMemory] = {}
        self._blind: dict[str, str] = {}
        self._recalled = False
        self._stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        due = dict.fromkeys((cluster.name for cluster in self._clusters), 0.0)
        try:
            while not self._stopping.is_set():
                for cluster in self._clusters:
                    if due[cluster.name] <= time.monotonic():
                        self.look(cluster)
                        pause = min(self._poll_s, LOCAL_POLL_S) if _on_this_host(cluster) else self._poll_s
                        due[cluster.name] = time.monotonic() + pause
                self._stopping.wait(max(0.01, min(due.values()) - time.monotonic()))
        except BaseException as error:
            # The main thread raises it too.
            self.failure = error

    @property
    def blind(self) -> Mapping[str, str]:
        """The clusters whose scheduler did not answer the last look, with the reason."""
        return dict(self._blind)

    def stop(self) -> None:
        self._stopping.set()

    def look(self, cluster: Cluster) -> None:
        """One look at one cluster. Logs once that a scheduler does not answer, and tries again next time."""
        starts = self._census.starts(cluster.kind)
        last_words = self._last_words if _on_this_host(cluster) else None
        if last_words is not None:
            self._drain_ended(last_words, starts)
        by_key = self._jobs_by_key()
        if not starts and not by_key:
            return
        watched = self._watched.get(cluster.name, WatcherMemory())
        try:
            look = self._take(cluster, watched, starts)
        except ClusterUnreachable as error:
            if self._blind.get(cluster.name) != error.what:
                say(f"{error}")
            self._blind[cluster.name] = error.what
            return
        self._blind.pop(cluster.name, None)
        cancellations = {
            name: cancellation
            for name in {*look.jobs, *look.answers}
            if (cancellation := cancellation_of(self._state_directory, name)) is not None
        }
        sweep = facts(watched, look, starts, jobs_by_key=by_key, cancellations=cancellations)
        for fact in sweep.facts:
            spec = self._census.spec_of(fact.job) if fact.ended else None
            if fact.ended and last_words is not None:
                start = JobStart(fact.job, fact.incarnation, effect_key=fact.effect_key)
                last_words.ended(start, spec, time.monotonic())
            self._reporter.event(replace(fact, saved=saved_by(spec)) if spec is not None else fact)
        self._watched[cluster.name] = sweep.watched
        self._tell_checkpoints(cluster, look, starts)

    def _tell_checkpoints(self, cluster: Cluster, look: SchedulerSweep, starts: tuple[JobStart, ...]) -> None:
        """Reports each new complete checkpoint of a start that runs: it is progress."""
        running = {
            start.incarnation: (start, spec.checkpoint_directory)
            for start in starts
            if start.state == _RUNNING
            and (seen := look.jobs.get(start.incarnation)) is not None
            and seen.state.word == _RUNNING
            and (spec := self._census.spec_of(start.job)) is not None
            and spec.checkpoint_directory
        }
        looks = self._looks.get(cluster.name)
        if looks is None:
            return
        directories = {name: directory for name, (_, directory) in running.items()}
        for name, choice in looks.look(directories, look.at).items():
            start, native = running[name][0], look.jobs[name].native_id
            self._reporter.event(
                SchedulerFact(
                    start.job,
                    name,
                    native,
                    _RUNNING,
                    _RUNNING,
                    ended=False,
                    effect_key=start.effect_key,
                    cluster=cluster.name,
                    saved=choice,
                )
            )

    def _drain_ended(self, last_words: LastWords, starts: tuple[JobStart, ...]) -> None:
        """Drains ended starts. The first look includes those that ended under an earlier executor."""
        latest = {start.job: start for start in starts}
        ended = [start for start in latest.values() if start.ended and not self._recalled]
        for start in ended:
            last_words.ended(start, self._census.spec_of(start.job), time.monotonic())
        self._recalled = True
        # A start that the census does not know yet has no follower: the latest one there may be older.
        followed = {start.incarnation for start in starts if latest[start.job] is not start}
        last_words.again(followed, time.monotonic())

    def _take(self, cluster: Cluster, watched: WatcherMemory, starts: tuple[JobStart, ...]) -> SchedulerSweep:
        jobs = {job.incarnation: job for job in cluster.sweep().jobs}
        if _on_this_host(cluster):
            # A process that our shim did not start may run on another host or in another container. This
            # host's /proc does not show it.
            starts = tuple(start for start in starts if start.incarnation in jobs)
        answers = _ask(cluster, questions(watched, jobs, starts))
        boot = cluster.epoch().name if any(s.kind == "absent" for s in answers.values()) else ""
        known = {start.incarnation for start in starts} | {native_id(start.incarnation) for start in starts}
        ours = {n: j for n, j in jobs.items() if j.effect_key or n in known or j.native_id in known}
        return SchedulerSweep(cluster.name, time.monotonic(), boot, ours, answers)


def _ask(cluster: Cluster, names: Iterable[str]) -> dict[str, StartState]:
    """The scheduler's answers about single starts. Raises ClusterUnreachable when it goes meanwhile.

    With a scheduler that has gone each question waits in vain: 25 s with SLURM, and there may be hundreds.
    """
    answers = {}
    for name in names:
        answers[name] = _with_user_name(cluster.state(name))
        if answers[name].kind == "unknown":
            cluster.sweep()
    return answers


def _on_this_host(cluster: Cluster) -> bool:
    """Whether its jobs are processes that this host shows. A Ray head is elsewhere."""
    return not cluster.holds and cluster.kind != "ray"


def _with_user_name(state: StartState) -> StartState:
    """Replaces the number of a user, which accounting may give, by the user's name."""
    if not state.by_person.startswith(_UID):
        return state
    try:
        return replace(state, by_person=pwd.getpwuid(int(state.by_person.removeprefix(_UID))).pw_name)
    except (KeyError, ValueError):
        return state
