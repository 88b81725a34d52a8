"""What detect exports of many jobs: as many series as the settings allow, and only what it knows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

from midwatch.agents.detect.fold import _JOB, _NODE
from midwatch.agents.detect.incident.state import JobState, NodeState
from midwatch.agents.detect.metrics import DetectMetrics
from midwatch.rules.detectors.silence import Pulse
from midwatch.streams.records import codec
from midwatch.streams.settings.schema import Settings, TelemetrySettings
from midwatch.streams.telemetry import names
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.exported import STALE_S
from midwatch.streams.worker.fold import Fields
from unit.agents.match.test_match_metrics import Kept

NOW_MS = 1_000_000
PER_JOB = (names.STEP, names.ATTEMPTS, names.PROGRESS_AGE, names.NODES_MISSING)


@dataclass
class Detector:
    """One partition of a detect worker, and what it exports."""

    runs: int = 100
    nodes: int = 100
    counters: Counters = field(default_factory=Counters)
    copies: dict[bytes, Fields] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counters.measured({}, time.time())
        self.kept = Kept()
        settings = replace(Settings(), telemetry=TelemetrySettings(runs=self.runs, nodes=self.nodes))
        table = SimpleNamespace(copies=lambda _partition: self.copies)
        agent: Any = SimpleNamespace(
            owned=lambda: (0,),
            seen={0: (NOW_MS, time.monotonic())},
            table=table,
            partition_state=lambda _partition: {},
        )
        app: Any = SimpleNamespace(settings=settings, counters=self.counters)
        DetectMetrics(app, agent, cast(Any, self.kept))

    def job(self, run: str, *silent_s: float) -> None:
        """A job that trains, and for how long each of its nodes was silent."""
        state = JobState(
            job=run, attempt=1, incarnation="local:1:1", started_ms=1, nodes=len(silent_s), step=7,
            shown_ms=NOW_MS,
        )  # fmt: skip
        fields = {_JOB: codec.state_to_bytes(state)}
        for number, age_s in enumerate(silent_s):
            pulse = Pulse(last_ms=int(NOW_MS - age_s * 1000))
            node = NodeState(incarnation="local:1:1", pulse=pulse)
            fields[_NODE + f"n{number}".encode()] = codec.state_to_bytes(node)
        self.copies[run.encode()] = fields

    def read(self, metric: names.Metric) -> list[tuple[float, dict[str, Any]]]:
        return [(value, dict(labels)) for value, labels in self.kept.reads[metric.name]()]


def test_as_many_jobs_have_series_as_the_setting_allows_and_the_others_are_counted() -> None:
    detector = Detector(runs=3)
    for number in range(10):
        detector.job(f"local:me/{number}", 1.0)
    for metric in PER_JOB:
        assert len(detector.read(metric)) == 3
    assert detector.read(names.JOBS_LEFT_OUT) == [(7, {})]


def test_of_too_many_nodes_those_that_are_silent_longest_have_series() -> None:
    detector = Detector(nodes=2)
    detector.job("local:me/llm", 1.0, 9.0, 5.0)
    assert [labels[names.NODE] for _, labels in detector.read(names.HEARTBEAT_AGE)] == ["n1", "n2"]


def test_a_worker_that_does_not_keep_up_calls_no_job_watched() -> None:
    def held(detector: Detector) -> list[str]:
        return [str(labels[names.STATE]) for value, labels in detector.read(names.JOB_STATE) if value]

    well, late = Detector(), Detector()
    late.counters.kept_up_at -= STALE_S + 1
    for detector in (well, late):
        detector.job("local:me/llm", 1.0)
    assert (held(well), held(late)) == (["watched"], ["unknown"])


def test_a_job_that_this_worker_has_not_read_yet_is_unknown() -> None:
    detector = Detector()
    detector.copies[b"local:me/llm"] = {}
    states = {labels[names.STATE]: value for value, labels in detector.read(names.JOB_STATE)}
    assert states == {"watched": 0, "failed": 0, "unknown": 1, "over": 0}
