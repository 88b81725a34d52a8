"""What the demo tells at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.agents.local.demo.judge import TrainingLedger, TrainingStart
from midwatch.agents.local.demo.script import Stage
from midwatch.agents.local.demo.summary import report
from midwatch.agents.query.timeline import Timed, timeline
from midwatch.streams.records import Decision, Hit, Incident, Line, Verdict
from midwatch.streams.records.identity import JobName

JOB = "local:ada/toy"
OPENED_MS, DECIDED_MS, STARTED = 10_000, 14_500, 15.25


def _told(line_at: float) -> list[str]:
    line = Line("Watchdog caught collective operation timeout", "/l/a", 8, 900, line_at)
    hit = Hit("watchdog", "consequence", "nccl_timeout", "nccl", "error", True, line, 9, "g")
    incident = Incident(
        f"{JOB}#1", JOB, 1, "local:1:1", "settled", 1, Verdict("failed"), evidence=(hit,), opened_ms=OPENED_MS
    )
    decision = Decision(JOB, 1, f"{JOB}#1", 1, "restart", "verdict", "so", DECIDED_MS, True)
    told = timeline(JOB, [Timed(1, incident), Timed(2, decision)])
    ledger = TrainingLedger((TrainingStart(1.0, 1, "7"), TrainingStart(STARTED, 41, "8")))
    stage = Stage(Path("/l"), JobName("local", "ada", "toy"))
    return report(stage, told, ledger, (), 20)


@pytest.mark.parametrize(("line_at", "seen"), [(9.75, "0.25 s"), (10.999999, "within its second")])
def test_the_times_from_the_line_to_the_new_first_step(line_at: float, seen: str) -> None:
    """A line that prints whole seconds only stands at its second's end."""
    assert f"times     line → incident {seen} → command 4.50 s → new first step 0.75 s" in _told(line_at)
