"""What detect exports of a job: a job that is not seen is unknown, and one that is over has no series."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.detect.incident.state import Job, JobState, NodeState
from midwatch.agents.detect.job_sight import UNSEEN_MS, JobSight, StepRate, sight
from midwatch.rules.detectors.loss_spike import LossWindow
from midwatch.rules.detectors.silence import Pulse
from midwatch.streams.records import Finding, Incident, Verdict
from unit.upgrade.filled import filled

RUN = "local:me/llm"
NOW = 100_000
STATE = JobState(
    job=RUN, attempt=2, incarnation="local:1:1", started_ms=10_000, nodes=2, step=7, shown_ms=95_000,
    losses=LossWindow((2.5, 2.25)),
)  # fmt: skip
HEARD = NodeState(incarnation="local:1:1", pulse=Pulse(last_ms=98_000, silence=3.0))
SILENT = NodeState(incarnation="local:1:1", pulse=Pulse(last_ms=50_000))
FAILED = replace(filled(Incident).verdict, state="failed")
HEALTHY = replace(FAILED, state="healthy")


def seen(
    state: JobState = STATE, *, sees: bool = True, now_ms: int = NOW, **nodes: NodeState
) -> JobSight | None:
    both = nodes or {"a": HEARD, "b": HEARD}
    return sight(RUN, Job(state, both), now_ms, forget_ms=60_000, sees=sees)


def test_a_job_that_is_seen_is_watched_and_tells_its_numbers() -> None:
    assert seen() == JobSight(
        RUN,
        "watched",
        2,
        7,
        2.25,
        progress_age=5.0,
        silence=3.0,
        missing=0,
        heartbeats=(("a", 2.0), ("b", 2.0)),
        phase="startup",
    )


def test_open_findings_phase_and_the_loaded_checkpoint_are_told_until_the_end() -> None:
    opened = dict.fromkeys(("loss_spike", "node_silent:a", "node_silent:b"), filled(Finding))
    state = replace(STATE, phase="checkpoint", findings=opened, checkpoint_step=40)
    now = seen(state)
    assert now is not None
    assert (now.phase, now.loaded) == ("checkpoint", 40)
    assert now.findings == ("loss_spike", "node_silent", "node_silent")
    over = seen(replace(state, ended_ms=90_000))
    assert over is not None
    assert (over.phase, over.findings) == (None, ())


@pytest.mark.capability("X-14")
@pytest.mark.parametrize(
    "found",
    [
        seen(sees=False),
        seen(replace(STATE, quorum_held=False)),
        seen(replace(STATE, findings={"blind": filled(Finding)})),
        seen(a=SILENT, b=SILENT),
        seen(a=replace(HEARD, incarnation="local:0:0")),
    ],
    ids=["the worker lags", "no quorum", "blind", "no node in sight", "heartbeats of an older start only"],
)
def test_a_job_that_is_not_seen_is_unknown_and_never_watched(found: JobSight | None) -> None:
    assert found is not None
    assert found.state == "unknown"


def test_a_node_that_is_silent_is_missing_and_its_age_grows() -> None:
    found = seen(a=HEARD, b=SILENT)
    assert found is not None
    assert (found.state, found.missing, dict(found.heartbeats)["b"]) == ("watched", 1, 50.0)


@pytest.mark.parametrize(("verdict", "state"), [(FAILED, "failed"), (HEALTHY, "over")])
def test_an_attempt_that_ended_tells_how(verdict: Verdict, state: str) -> None:
    incident = replace(filled(Incident), state="settled", verdict=verdict)
    found = seen(replace(STATE, incident=incident, ended_ms=NOW - 1000))
    assert found is not None
    assert (found.state, found.progress_age, found.heartbeats) == (state, None, ())


def test_the_series_end_some_time_after_the_job() -> None:
    assert seen(replace(STATE, ended_ms=NOW - 59_000)) is not None
    assert seen(replace(STATE, ended_ms=NOW - 61_000)) is None


def test_a_job_that_nobody_ended_is_unknown_for_a_day() -> None:
    found = seen(now_ms=NOW + UNSEEN_MS - 10_000)
    assert found is not None
    assert found.state == "unknown"
    assert seen(now_ms=NOW + UNSEEN_MS) is None


def test_the_pace_is_steps_a_second_of_this_attempt() -> None:
    pace = StepRate()
    assert pace.look(1, 10, 0) is None
    assert pace.look(1, 30, 10_000) == 2.0
    assert pace.look(2, 11, 20_000) is None
    assert pace.look(2, 12, 21_000) == 1.0
    assert pace.look(2, 5, 22_000) is None
