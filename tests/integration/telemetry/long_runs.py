"""`make test-otel`: each process killed alone, and a loss of Redis, on the real chain."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from integration.chain.installation import Installation
from integration.telemetry.collector import Collector, GotSpan
from integration.telemetry.incidents import (
    NCCL,
    SOON,
    await_commits,
    await_whole,
    caught_up,
    fail_under_fire,
    lose_states,
    run_of,
    running,
)
from integration.telemetry.scraped import Scrapes
from midwatch.agents.decide.reasons import FINDING
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.scrape_names import prometheus_name
from processes import wait_for

TRACED = Path(__file__).with_name("traced_job.py")
COUNTED = {
    prometheus_name(names.INCIDENTS): names.INCIDENT_EVENT,
    prometheus_name(names.FINDINGS): names.FINDING_EVENT,
    prometheus_name(names.DECISIONS): names.DECISION_EVENT,
}
"""What a process counts as it happens, and the log record of each."""
pytestmark = pytest.mark.integration


def test_traces_are_whole_whichever_process_is_killed(
    watch: Installation, collector: Collector, tmp_path: Path
) -> None:
    fates = [("match", "trace"), ("detect",), ("decide",), ("executor",)]
    fail_under_fire(watch, collector, tmp_path, fates)


def test_a_rebuild_after_a_loss_of_redis_emits_nothing_twice(
    watch: Installation, scrapes: Scrapes, collector: Collector, tmp_path: Path
) -> None:
    first = running(watch, tmp_path / "first")
    first.crash(("n0", NCCL))
    await_whole(collector, run_of(first))
    before = {(span.name, span.span) for span in collector.spans}
    told = len(collector.logs)
    await_commits(watch)
    lose_states(watch)
    for process in ("detect", "decide"):
        wait_for(lambda p=process: caught_up(scrapes, p), f"{process} has folded all again", SOON)  # type: ignore[misc]  # mypy sees no type in a default
    wait_for(
        lambda: counted(scrapes) <= Counter(log.name for log in collector.logs[told:]),
        "the new processes have counted nothing but what is new",
        SOON,
        seen=lambda: (counted(scrapes), collector.logs[told:]),
    )
    last = running(watch, tmp_path / "last")
    last.crash(("n0", NCCL))
    await_whole(collector, run_of(last))
    ours = {(span.name, span.span) for span in collector.of_run(run_of(last))}
    assert {(span.name, span.span) for span in collector.spans} == before | ours
    assert collector.twice() == []


def counted(scrapes: Scrapes) -> Counter[str]:
    """What detect and decide have counted since they began. Decisions on findings have no record."""
    found = Counter[str]()
    for sample in (*scrapes.samples("detect"), *scrapes.samples("decide")):
        if sample.name in COUNTED and sample.labels.get(names.REASON) != FINDING:
            found[COUNTED[sample.name]] += int(sample.value)
    return found


@pytest.mark.capability("X-51")
def test_a_trainers_own_spans_hang_under_the_incident_that_restarted_it(
    watch: Installation, collector: Collector, tmp_path: Path
) -> None:
    (tmp_path / "collector").write_text(collector.url)
    job = running(watch, tmp_path / "job", writer=TRACED)
    job.crash(("n0", NCCL))
    await_whole(collector, run_of(job))
    outcome = next(span for span in collector.of_run(run_of(job)) if span.name == "outcome")

    def of_trainer() -> list[GotSpan]:
        return [span for span in collector.spans if span.service == "trainer"]

    wait_for(lambda: len(of_trainer()) == 2, "both starts have told their spans", SOON, seen=of_trainer)
    first, second = of_trainer()
    assert (first.parent, first.trace != outcome.trace) == ("", True)
    assert (second.trace, second.parent) == (outcome.trace, outcome.span)
