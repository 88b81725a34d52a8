"""Jobs that fail, the traces of their incidents, and what a scrape says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from integration.chain.installation import WRITER, Installation, Job
from integration.chain.training import PROCESSES
from integration.telemetry.collector import Collector, GotSpan
from integration.telemetry.scraped import Scrapes
from midwatch.streams.records.codec import decode
from midwatch.streams.services.reachable import kafka_options, redis_client
from processes import alive, wait_for

SOON = 120.0
NCCL = (
    "[rank1]:[E1120 03:04:05.678901 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=414, OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=9000) ran for 9003 "
    "milliseconds before timing out."
)
WHOLE = Counter(("incident", "line", "hit", "settle", "decision", "command", "answer", "outcome"))
ALL = (*PROCESSES, "trace")
A_LOOK = 50
"""Records that the jobs of other tests may send between two looks of a worker at its lag."""


def await_whole(collector: Collector, run: str) -> None:
    """A later fact may revise an incident: then a revision and its decision come too."""

    def is_whole() -> bool:
        found = names(collector, run)
        return found >= WHOLE and set(found - WHOLE) <= {"revision", "decision"}

    wait_for(is_whole, f"the trace of {run} is whole", SOON, seen=lambda: names(collector, run))


def over(job: Job) -> bool:
    return not alive(int((job.directory / "starts").read_text().split()[0]))


def await_commits(watch: Installation) -> None:
    """Detect and decide have told Kafka that they are through with all that they were sent until now.

    They do so once a second. What they sent since comes again behind a loss of Redis, under the same ids.
    """
    topics = watch.settings.topic_names
    for process, topic in (("detect", topics.events), ("decide", topics.incidents)):
        group = f"{watch.settings.topics.prefix}.{process}"
        reader: Any = KafkaConsumer(**kafka_options(watch.settings), group_id=group, enable_auto_commit=False)
        try:
            ends = reader.end_offsets([TopicPartition(topic, n) for n in reader.partitions_for_topic(topic)])
            wait_for(
                lambda r=reader, e=ends: all((r.committed(place) or 0) >= end for place, end in e.items()),  # type: ignore[misc]  # mypy sees no type in a default
                f"{process} has committed what it was sent",
                SOON,
            )
        finally:
            reader.close()


def lose_states(watch: Installation) -> None:
    """Redis loses all that detect, decide and the trace process have kept, while the first two are dead."""
    client = redis_client(watch.settings)
    with watch._hands:
        for name in ("detect", "decide"):
            watch.kill(name)
            watch.processes[name].wait(30)
        for lost in (f"mw:{{{watch.settings.topics.prefix}.*", f"{watch.settings.topics.prefix}:trace:*"):
            keys = list(client.scan_iter(match=lost))
            assert keys
            client.delete(*keys)


def caught_up(scrapes: Scrapes, process: str) -> bool:
    lags = [sample.value for sample in scrapes.samples(process) if sample.name == "midwatch_lag"]
    return len(lags) == 4 and max(lags) < A_LOOK


def series(scrapes: Scrapes, run: str) -> list[str]:
    return [
        sample.name
        for process in ALL
        if process != "decide"  # it does not hear that a job ended well
        for sample in scrapes.samples(process)
        if sample.labels.get("run") == run
    ]


def running(watch: Installation, directory: Path, writer: Path = WRITER) -> Job:
    job = watch.run(directory, nodes=("n0",), writer=writer)
    job.ship()
    wait_for(lambda: job.step() > 3, "progress is seen", SOON)
    return job


def names(collector: Collector, run: str) -> Counter[str]:
    """The names of our spans of this job; a trainer's own may hang among them."""
    ours = (span for span in collector.of_run(run) if span.service.startswith("midwatch-"))
    return Counter(span.name for span in ours)


def check_tree(spans: dict[str, GotSpan]) -> None:
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


def headers_in_kafka(watch: Installation, incident: str) -> set[tuple[str, str]]:
    """Kind and header `traceparent` of each record in Kafka that belongs to the incident; "" without one."""
    topics, found = watch.settings.topic_names, set[tuple[str, str]]()
    reader: Any = KafkaConsumer(**kafka_options(watch.settings), auto_offset_reset="earliest")
    try:
        names_of_topics = (topics.incidents, topics.decisions, topics.commands, topics.events)
        places = [TopicPartition(t, n) for t in names_of_topics for n in reader.partitions_for_topic(t)]
        reader.assign(places)
        ends = reader.end_offsets(places)
        while any(reader.position(place) < end for place, end in ends.items()):
            for message in (one for batch in reader.poll(500).values() for one in batch):
                record = decode(message.value)
                if incident in (getattr(record, "id", ""), getattr(record, "incident", "")):
                    header = dict(message.headers or ()).get("traceparent", b"")
                    found.add((type(record).__name__.lower(), header.decode()))
    finally:
        reader.close()
    return found


def run_of(job: Job) -> str:
    story = job.story()
    assert story is not None
    return story.job


def state(scrapes: Scrapes, run: str) -> str:
    states = [
        sample.labels["state"]
        for sample in scrapes.samples("detect")
        if sample.name == "midwatch_job_state" and sample.labels["run"] == run and sample.value
    ]
    return ",".join(states)


def fail_under_fire(
    watch: Installation, collector: Collector, directory: Path, fates: Sequence[Sequence[str]]
) -> None:
    """A job for each of `fates` fails, and what that names is killed. All traces come whole, and once."""
    jobs = [running(watch, directory / f"job{number}") for number, _ in enumerate(fates)]
    runs = [run_of(job) for job in jobs]
    collector.away = True
    for job, fate in zip(jobs, fates, strict=True):
        job.crash(("n0", NCCL))
        wait_for(lambda j=job: over(j), "the job fails", SOON)  # type: ignore[misc]  # mypy sees no type in a default
        for process in fate:
            watch.kill(process)
    for job in jobs:
        wait_for(lambda j=job: j.starts() == 2, "the rescue", SOON)  # type: ignore[misc]  # as above
    wait_for(lambda: collector.refused > 0, "the collector was asked while it was away", SOON)
    collector.away = False
    for run in runs:
        await_whole(collector, run)
    assert collector.twice() == []
