"""What decide exports of a job's budget, for how long, and of how many jobs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from midwatch.agents.decide.fold import _DECIDE
from midwatch.agents.decide.metrics import RESTARTED_MS, DecideMetrics
from midwatch.agents.decide.state import DecideState
from midwatch.streams.records import Decision, codec
from midwatch.streams.settings.schema import Settings, TelemetrySettings
from midwatch.streams.telemetry import names
from midwatch.streams.worker.fold import Fields
from unit.agents.match.test_match_metrics import Kept
from unit.upgrade.filled import filled

FORGET_S = 60.0


@dataclass
class Decider:
    """One partition of a decide worker, and what it exports."""

    runs: int = 100
    copies: dict[bytes, Fields] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kept = Kept()
        settings = replace(Settings(), telemetry=TelemetrySettings(forget=FORGET_S, runs=self.runs))
        table = SimpleNamespace(copies=lambda _partition: self.copies)
        agent: Any = SimpleNamespace(owned=lambda: (0,), table=table)
        DecideMetrics(cast(Any, SimpleNamespace(settings=settings)), agent, self.kept)

    def decided(self, job: str, action: str, age_s: float, restarts: Mapping[str, int]) -> None:
        at_ms = int((time.time() - age_s) * 1000)
        last = replace(filled(Decision), job=job, action=action, at_ms=at_ms, restart_limit=3)  # type: ignore[arg-type]  # one of its words
        state = DecideState(job=job, last=last, restarts=restarts)
        self.copies[job.encode()] = {_DECIDE: codec.state_to_bytes(state)}

    def read(self, metric: names.Metric) -> dict[str, float]:
        return {str(labels.get(names.RUN, "")): value for value, labels in self.kept.reads[metric.name]()}


@pytest.fixture
def decider() -> Decider:
    return Decider()


def test_the_budget_left_is_the_limit_less_all_restarts(decider: Decider) -> None:
    decider.decided("local:me/llm", "restart", 1, {"crash": 1, "stall": 1})
    assert decider.read(names.BUDGET_LEFT) == {"local:me/llm": 1}
    assert decider.read(names.RESTARTS) == {"local:me/llm": 2}


@pytest.mark.parametrize(
    ("action", "kept_s"), [("stop", FORGET_S), ("hold", FORGET_S), ("restart", RESTARTED_MS / 1000)]
)
def test_the_series_of_a_job_end_some_time_after_its_last_decision(
    action: str, kept_s: float, decider: Decider
) -> None:
    decider.decided("local:me/lately", action, kept_s - 10, {})
    decider.decided("local:me/long-ago", action, kept_s + 10, {})
    for metric in (names.BUDGET_LEFT, names.RESTARTS):
        assert list(decider.read(metric)) == ["local:me/lately"]


def test_jobs_beyond_the_setting_are_counted_and_have_no_series() -> None:
    decider = Decider(runs=2)
    for number in range(5):
        decider.decided(f"local:me/{number}", "stop", 1, {})
    assert len(decider.read(names.RESTARTS)) == 2
    assert decider.read(names.JOBS_LEFT_OUT) == {"": 3}
