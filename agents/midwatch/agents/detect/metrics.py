"""Exports the jobs of a detect worker. Each scrape reads its tables, so that a record costs nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from midwatch.agents.detect.fold import dues, job_of
from midwatch.agents.detect.job_sight import PHASES, STATES, JobSight, StepRate, sight, unseen
from midwatch.streams.records import Finding, Incident, codec
from midwatch.streams.records.identity import is_job
from midwatch.streams.settings.schema import TelemetrySettings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Meter, Reading
from midwatch.streams.telemetry.names import Metric
from midwatch.streams.worker.app import App
from midwatch.streams.worker.exported import health
from midwatch.streams.worker.incoming import RawRecord
from midwatch.streams.worker.stateful import StatefulAgent
from midwatch.streams.worker.tables.batch import Batch

_FRESH_S = 0.5
"""One scrape reads many gauges, and all of them are made from one look."""
_FIRST = 1
"""The revision of an incident's first verdict."""


class DetectMetrics:
    """The gauges of jobs, and the counters of what detect found."""

    def __init__(self, app: App, agent: StatefulAgent, meter: Meter) -> None:
        self._app = app
        self._agent = agent
        self._meter = meter
        self._settings: TelemetrySettings = app.settings.telemetry
        self._incidents = app.settings.topic_names.incidents
        self._paces: dict[str, StepRate] = {}
        self._seen: tuple[float, list[JobSight], dict[str, float], int] = (float("-inf"), [], {}, 0)
        meter.watch(names.JOB_STATE, self._states)
        meter.watch(names.JOB_PHASE, self._phases)
        meter.watch(names.OPEN_FINDING, self._findings)
        meter.watch(names.THROUGHPUT, self._throughput)
        meter.watch(names.HEARTBEAT_AGE, self._heartbeats)
        meter.watch(names.JOBS_LEFT_OUT, lambda: [(self._look()[3], {})])
        gauges: tuple[tuple[Metric, Callable[[JobSight], float | None]], ...] = (
            (names.STEP, lambda job: job.step),
            (names.LOSS, lambda job: job.loss),
            (names.PROGRESS_AGE, lambda job: job.progress_age),
            (names.SILENCE, lambda job: job.silence),
            (names.ATTEMPTS, lambda job: job.attempt or None),
            (names.NODES_MISSING, lambda job: job.missing),
            (names.LOADED, lambda job: job.loaded),
        )
        for metric, value in gauges:
            self._watch(metric, value)

    def landed(self, batch: Batch, _records: Sequence[RawRecord]) -> None:
        """Count what a written batch sends. What was sent before a loss of Redis is not among it."""
        for _, send in batch.outgoing:
            if send.topic != self._incidents or send.value is None:
                continue
            record = codec.decode(send.value)
            if isinstance(record, Incident) and record.state == "settled" and record.revision == _FIRST:
                self._meter.add(names.INCIDENTS, 1, {names.ERROR_TYPE: record.verdict.error_type})
            elif isinstance(record, Finding) and record.open:
                self._meter.add(names.FINDINGS, 1, {names.KIND: record.kind.partition(":")[0]})

    def _watch(self, metric: Metric, value: Callable[[JobSight], float | None]) -> None:
        def read() -> Iterable[Reading]:
            return [
                (number, {names.RUN: job.run})
                for job in self._look()[1]
                if (number := value(job)) is not None
            ]

        self._meter.watch(metric, read)

    def _states(self) -> Iterable[Reading]:
        return [
            (int(job.state == state), {names.RUN: job.run, names.STATE: state})
            for job in self._look()[1]
            for state in STATES
        ]

    def _phases(self) -> Iterable[Reading]:
        return [
            (int(job.phase == phase), {names.RUN: job.run, names.PHASE: phase})
            for job in self._look()[1]
            if job.phase is not None
            for phase in PHASES
        ]

    def _findings(self) -> Iterable[Reading]:
        return [
            (number, {names.RUN: job.run, names.KIND: kind})
            for job in self._look()[1]
            for kind, number in Counter(job.findings).items()
        ]

    def _throughput(self) -> Iterable[Reading]:
        return [(rate, {names.RUN: run}) for run, rate in self._look()[2].items()]

    def _heartbeats(self) -> Iterable[Reading]:
        all_nodes = [(job.run, name, age) for job in self._look()[1] for name, age in job.heartbeats]
        # Where there are too many, those that were silent longest are the ones to look at.
        all_nodes.sort(key=lambda each: -each[2])
        return [
            (age, {names.RUN: run, names.NODE: name}) for run, name, age in all_nodes[: self._settings.nodes]
        ]

    def _look(self) -> tuple[float, list[JobSight], dict[str, float], int]:
        if time.monotonic() - self._seen[0] < _FRESH_S:
            return self._seen
        found: list[JobSight] = []
        rates: dict[str, float] = {}
        sees = health(self._app.counters, time.time()).ready
        for partition in tuple(self._agent.owned()):
            seen = self._agent.seen.get(partition)
            if seen is None:
                continue
            now_ms = seen[0] + int(1000 * (time.monotonic() - seen[1]))
            found += self._jobs(partition, now_ms, rates, sees=sees)
        shown = sorted(found, key=lambda job: (job.state == "over", job.run))[: self._settings.runs]
        kept = {job.run for job in shown}
        self._paces = {run: pace for run, pace in self._paces.items() if run in kept}
        rates = {run: rate for run, rate in rates.items() if run in kept}
        self._seen = (time.monotonic(), shown, rates, len(found) - len(shown))
        return self._seen

    def _jobs(
        self, partition: int, now_ms: int, rates: dict[str, float], *, sees: bool
    ) -> Iterable[JobSight]:
        copies = self._agent.table.copies(partition)
        for key in {*dues(self._agent.partition_state(partition)), *copies}:
            if not is_job(key):
                continue
            run = key.decode()
            if not copies.get(key):
                yield unseen(run)  # no record of it came since this worker owns the partition
                continue
            forget_ms = int(self._settings.forget * 1000)
            job = sight(run, job_of(copies[key]), now_ms, forget_ms=forget_ms, sees=sees)
            if job is None:
                continue
            pace = self._paces.setdefault(run, StepRate())
            rate = pace.look(job.attempt, job.step, now_ms)
            if rate is not None and job.state == "watched":
                rates[run] = rate
            yield job
