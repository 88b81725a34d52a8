"""On the real chain: what a scrape says of a job, its incident as one trace, and both under fire."""

from __future__ import annotations

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
from processes import wait_for

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
WHOLE = Counter(
    ("incident", "line", "hit", "settle", "decision", "command", "answer", "outcome")
)
ALL = (*PROCESSES, "trace")


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
    assert scrapes.value("match", "midwatch_line_matched_total") or 0 > 5
    wait_for(lambda: (scrapes.value("detect", "midwatch_job_throughput_per_second", run=run) or 0) > 1, "a pace", SOON)
    for process in ALL:
        wait_for(lambda p=process: scrapes.ready(p)[0] == 200, f"{process} says that it is ready", SOON)  # type: ignore[misc]
        assert scrapes.value(process, "midwatch_watch_last_look_seconds")

    job.crash(("n0", NCCL))
    wait_for(lambda: job.starts() == 2, "the rescue", SOON)
    wait_for(lambda: _names(collector, run) == WHOLE, f"the trace is whole", SOON)
    spans = {span.name: span for span in collector.of_run(run)}
    _check_tree(spans)
    print({name: (s.start_ms, s.end_ms, s.attributes) for name, s in spans.items()})
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


def _running(watch: Installation, directory: Path) -> Job:
    job = watch.run(directory, nodes=("n0",))
    job.ship()
    wait_for(lambda: job.step() > 3, "progress is seen", SOON)
    return job


def _names(collector: Collector, run: str) -> Counter[str]:
    return Counter(span.name for span in collector.of_run(run))


def _check_tree(spans: dict[str, GotSpan]) -> None:
    parents = {name: next((p.name for p in spans.values() if p.span == s.parent), "") for name, s in spans.items()}
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
