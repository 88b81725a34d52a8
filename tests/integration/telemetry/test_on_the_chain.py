"""On the real chain: what a scrape says of a job, its incident as one trace, and both under fire."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, installation, midwatch
from integration.chain.training import PROCESSES
from integration.telemetry.collector import Collector, GotSpan
from integration.telemetry.scraped import Scrapes, ports_of_all
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.services.reachable import redis_client
from processes import alive, wait_for

pytestmark = pytest.mark.integration
SOON = 120.0
OUT_OF_MEMORY = (
    "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 2 has a total "
    "capacity of 79.10 GiB of which 1.06 GiB is free."
)
NCCL = (
    "[rank1]:[E1120 03:04:05.678901 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=9000) ran for 9003 "
    "milliseconds before timing out."
)
WHOLE = Counter(("incident", "line", "hit", "settle", "decision", "command", "answer", "outcome"))
ALL = (*PROCESSES, "trace")
LONG = bool(os.environ.get("OTEL_LONG"))
EACH = (("match", "trace"), ("detect",), ("decide",), ("executor",))
FATES = [(ALL,), EACH] if LONG else [(ALL,)]
"""Of each job: what is killed once it has failed. In the long run, also each process alone."""


@pytest.fixture(scope="module")
def scrapes() -> Scrapes:
    return Scrapes(ports_of_all())


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture(scope="module")
def watch(
    stack: Endpoints, scrapes: Scrapes, collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        made.environment["MIDWATCH_TELEMETRY__PROMETHEUS"] = f"127.0.0.1:{scrapes.base}"
        made.environment["MIDWATCH_TELEMETRY__OTLP"] = collector.url
        made.environment["MIDWATCH_TELEMETRY__FORGET"] = "2s"
        made.environment["MIDWATCH_TELEMETRY__INTERVAL"] = "1s"
        for name in PROCESSES:
            made.start(name)
        made.start("trace", *midwatch("worker", "trace"))
        made.ready()
        yield made


@pytest.mark.capability("X-14", "X-51")
def test_a_job_is_seen_from_its_first_step_to_its_rescue(
    watch: Installation, scrapes: Scrapes, collector: Collector, tmp_path: Path
) -> None:
    job = _running(watch, tmp_path / "job")
    run = _run(job)
    wait_for(lambda: (scrapes.value("detect", "midwatch_job_step", run=run) or 0) > 5, "steps", SOON)
    wait_for(lambda: _state(scrapes, run) == "watched", "the job is watched", SOON)
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

    job.crash(("n0", NCCL))
    wait_for(lambda: job.starts() == 2, "the rescue", SOON)
    _await_whole(collector, run)
    spans = {span.name: span for span in collector.of_run(run)}
    _check_tree(spans)
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
    assert collector.twice() == []


def test_a_job_that_nobody_sees_is_unknown_and_one_that_is_over_has_no_series(
    watch: Installation, scrapes: Scrapes, tmp_path: Path
) -> None:
    job = _running(watch, tmp_path / "job")
    run = _run(job)
    wait_for(lambda: _state(scrapes, run) == "watched", "the job is watched", SOON)
    job.shipper("n0").send_signal(signal.SIGSTOP)
    wait_for(lambda: _state(scrapes, run) == "unknown", "nobody sees the job", SOON)
    age = scrapes.value("detect", "midwatch_heartbeat_age_seconds", run=run, node="n0")
    assert age is not None
    assert age > 0.5
    job.shipper("n0").send_signal(signal.SIGCONT)
    wait_for(lambda: _state(scrapes, run) == "watched", "the job is seen again", SOON)
    job.finish()
    wait_for(lambda: _series(scrapes, run) == [], "no series names the job any more", SOON)


@pytest.mark.parametrize("fates", FATES, ids=lambda fates: "; ".join(" and ".join(fate) for fate in fates))
def test_traces_are_whole_and_nothing_comes_twice_whatever_is_killed(
    fates: tuple[tuple[str, ...], ...], watch: Installation, collector: Collector, tmp_path: Path
) -> None:
    jobs = [_running(watch, tmp_path / f"job{number}") for number, _ in enumerate(fates)]
    runs = [_run(job) for job in jobs]
    collector.away = True
    for job, fate in zip(jobs, fates, strict=True):
        job.crash(("n0", NCCL))
        wait_for(lambda j=job: _over(j), "the job fails", SOON)  # type: ignore[misc]  # mypy sees no type in a default
        for process in fate:
            watch.kill(process)
    for job in jobs:
        wait_for(lambda j=job: j.starts() == 2, "the rescue", SOON)  # type: ignore[misc]  # as above
    wait_for(lambda: collector.refused > 0, "the collector was asked while it was away", SOON)
    collector.away = False
    for run in runs:
        _await_whole(collector, run)
    assert collector.twice() == []


@pytest.mark.skipif(not LONG, reason="make test-otel runs it")
def test_a_rebuild_after_a_loss_of_redis_emits_nothing_twice(
    watch: Installation, scrapes: Scrapes, collector: Collector, tmp_path: Path
) -> None:
    first = _running(watch, tmp_path / "first")
    first.crash(("n0", NCCL))
    _await_whole(collector, _run(first))
    before = {(span.name, span.span) for span in collector.spans}
    _lose_states(watch)
    for process in ("detect", "decide"):
        wait_for(lambda p=process: _caught_up(scrapes, p), f"{process} has folded all again", SOON)  # type: ignore[misc]  # mypy sees no type in a default
    last = _running(watch, tmp_path / "last")
    last.crash(("n0", NCCL))
    _await_whole(collector, _run(last))
    ours = {(span.name, span.span) for span in collector.of_run(_run(last))}
    assert {(span.name, span.span) for span in collector.spans} == before | ours
    assert collector.twice() == []


def _await_whole(collector: Collector, run: str) -> None:
    """A later fact may revise an incident: then a revision and its decision come too."""

    def is_whole() -> bool:
        found = _names(collector, run)
        return found >= WHOLE and set(found - WHOLE) <= {"revision", "decision"}

    wait_for(is_whole, f"the trace of {run} is whole", SOON, seen=lambda: _names(collector, run))


def _over(job: Job) -> bool:
    return not alive(int((job.directory / "starts").read_text().split()[0]))


def _lose_states(watch: Installation) -> None:
    """Redis loses all that detect and decide kept, while both are dead."""
    client = redis_client(watch.settings)
    with watch._hands:
        for name in ("detect", "decide"):
            watch.kill(name)
            watch.processes[name].wait(30)
        keys = list(client.scan_iter(match=f"mw:{{{watch.settings.topics.prefix}.*"))
        assert keys
        client.delete(*keys)


def _caught_up(scrapes: Scrapes, process: str) -> bool:
    lags = [sample.value for sample in scrapes.samples(process) if sample.name == "midwatch_lag"]
    return len(lags) == 4 and not any(lags)


def _series(scrapes: Scrapes, run: str) -> list[str]:
    return [
        sample.name
        for process in ALL
        for sample in scrapes.samples(process)
        if sample.labels.get("run") == run
    ]


def _running(watch: Installation, directory: Path) -> Job:
    job = watch.run(directory, nodes=("n0",))
    job.ship()
    wait_for(lambda: job.step() > 3, "progress is seen", SOON)
    return job


def _names(collector: Collector, run: str) -> Counter[str]:
    return Counter(span.name for span in collector.of_run(run))


def _check_tree(spans: dict[str, GotSpan]) -> None:
    parents = {
        name: next((p.name for p in spans.values() if p.span == s.parent), "") for name, s in spans.items()
    }
    assert parents == {
        "incident": "", "line": "incident", "hit": "incident", "settle": "incident", "decision": "incident",
        "command": "decision", "answer": "command", "outcome": "command",
    }  # fmt: skip
    assert len({span.trace for span in spans.values()}) == 1
    order = ("line", "hit", "settle", "decision", "command", "answer", "outcome")
    begins = [spans[name].start_ms for name in order]
    assert begins == sorted(begins)
    assert all(span.start_ms <= span.end_ms for span in spans.values())


def _run(job: Job) -> str:
    story = job.story()
    assert story is not None
    return story.job


def _state(scrapes: Scrapes, run: str) -> str:
    states = [
        sample.labels["state"]
        for sample in scrapes.samples("detect")
        if sample.name == "midwatch_job_state" and sample.labels["run"] == run and sample.value
    ]
    return ",".join(states)
