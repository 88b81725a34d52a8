"""On the real chain: what a scrape says of a job, its incident as one trace, and both under fire."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from integration.chain.installation import Installation
from integration.telemetry.collector import Collector
from integration.telemetry.incidents import (
    ALL,
    NCCL,
    SOON,
    await_whole,
    check_tree,
    fail_under_fire,
    headers_in_kafka,
    run_of,
    running,
    series,
    state,
)
from integration.telemetry.scraped import Scrapes
from midwatch.streams.telemetry.names import INCIDENT
from processes import wait_for

pytestmark = pytest.mark.integration


@pytest.mark.capability("X-14")
def test_a_job_is_seen_from_its_first_step_to_its_end_and_unknown_while_nobody_sees_it(
    watch: Installation, scrapes: Scrapes, collector: Collector, tmp_path: Path
) -> None:
    job = running(watch, tmp_path / "job")
    run = run_of(job)
    wait_for(lambda: (scrapes.value("detect", "midwatch_job_step", run=run) or 0) > 5, "steps", SOON)
    wait_for(lambda: state(scrapes, run) == "watched", "the job is watched", SOON)
    assert scrapes.value("detect", "midwatch_job_loss", run=run) == 2.0
    assert scrapes.value("detect", "midwatch_job_attempt", run=run) == 1
    assert (scrapes.value("match", "midwatch_line_matched_total") or 0) > 5
    wait_for(
        lambda: (scrapes.value("detect", "midwatch_job_throughput_per_second", run=run) or 0) > 1,
        "a pace",
        SOON,
    )
    for process in ALL:
        wait_for(lambda p=process: scrapes.ready(p)[0] == 200, f"{process} says that it is ready", SOON)  # type: ignore[misc]  # mypy sees no type in a default
        assert scrapes.value(process, "midwatch_watch_last_look_seconds")

    job.shipper("n0").send_signal(signal.SIGSTOP)
    wait_for(lambda: state(scrapes, run) == "unknown", "nobody sees the job", SOON)
    age = scrapes.value("detect", "midwatch_heartbeat_age_seconds", run=run, node="n0")
    assert age is not None
    assert age > 0.5
    job.shipper("n0").send_signal(signal.SIGCONT)
    wait_for(lambda: state(scrapes, run) == "watched", "the job is seen again", SOON)

    job.crash(("n0", NCCL))
    wait_for(lambda: job.starts() == 2, "the rescue", SOON)
    await_whole(collector, run)
    spans = {span.name: span for span in collector.of_run(run)}
    check_tree(spans)
    sent = {f"00-{span.trace}-{span.span}-01": name for name, span in spans.items()}
    headers = headers_in_kafka(watch, str(spans["incident"].attributes[INCIDENT]))
    assert {(kind, sent.get(header, header)) for kind, header in headers} == {
        (kind, kind) for kind in ("incident", "decision", "command", "outcome")
    }
    assert scrapes.value("decide", "midwatch_decisions_total", action="restart", reason="policy") == 1
    assert scrapes.value("executor", "midwatch_commands_total", action="restart", outcome="done") == 1
    pid = int((job.directory / "starts").read_text().split()[-1])
    told = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    trace, outcome = spans["outcome"].trace, spans["outcome"].span
    assert f"TRACEPARENT=00-{trace}-{outcome}-01".encode() in told
    events = [log.name for log in collector.logs if log.trace == trace]
    assert Counter(events) == Counter(
        ["midwatch.incident", "midwatch.decision", "midwatch.outcome", "midwatch.outcome"]
    )
    assert {service for service, _ in collector.metrics} >= {f"midwatch-{name}" for name in ALL}
    assert ("midwatch-ship", "midwatch.shipper.backlog") in collector.metrics
    assert collector.twice() == []
    job.finish()
    wait_for(lambda: series(scrapes, run) == [], "no series names the job any more", SOON)


def test_traces_are_whole_and_nothing_comes_twice_whatever_is_killed(
    watch: Installation, collector: Collector, tmp_path: Path
) -> None:
    fail_under_fire(watch, collector, tmp_path, [ALL])
