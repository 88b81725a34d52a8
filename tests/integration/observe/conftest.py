"""A whole watch under a real Prometheus: one job fails and is rescued, then fails for good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from kafka import KafkaProducer

from integration.chain.installation import Installation, installation, midwatch
from integration.chain.training import PROCESSES, Training
from integration.observe.prometheus import Server, query, start_alertmanager, start_prometheus
from integration.telemetry.collector import Collector
from integration.telemetry.scraped import ports_of_all
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Incident, Verdict, codec
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.telemetry.start import PROCESSES as IN_ORDER_OF_PORTS
from processes import wait_for
from sinks import HttpSink, http_sink

SOON = 120.0
RULES = r"""version: 1
rules:
  - name: saved_at
    pattern: 'saving checkpoint at iteration\s+(?P<at>\d+)'
    role: context
    export: [at]
"""
OPTIONS = (
    "--iteration-ms=300",
    "--save-every=4",
    "--fault=nccl@12:1",
    "--fault=spike@20:2",
    "--fault=oom@28:2",
)


@dataclass
class Story:
    """What is left when all is over: two servers that have seen it, and the sinks of alerts."""

    prometheus: Server
    alertmanager: Server
    people: HttpSink
    dead_man: HttpSink
    run: str
    began: float
    watch: Installation


@pytest.fixture(scope="module")
def story(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    directory = tmp_path_factory.mktemp("observed")
    first = ports_of_all()
    servers: list[Server] = []
    collector = Collector()
    rules = directory / "rules.yaml"
    rules.write_text(RULES)
    with (
        installation(directory, stack) as watch,
        http_sink() as people,
        http_sink() as dead_man,
        http_sink() as told,
    ):
        watch.environment["MIDWATCH_TELEMETRY__PROMETHEUS"] = f"127.0.0.1:{first}"
        watch.environment["MIDWATCH_TELEMETRY__OTLP"] = collector.url
        watch.environment["MIDWATCH_RULES__DIRECTORIES"] = str(rules)
        for name in PROCESSES:
            watch.start(name)
        watch.start("trace", *midwatch("worker", "trace"))
        start_messages(watch, told)
        began, ports = time.time(), ports_of_all()
        try:
            alertmanager = start_alertmanager(directory / "am", ports, people.url, dead_man.url)
            servers.append(alertmanager)
            targets = {name: f"127.0.0.1:{first + number}" for number, name in enumerate(IN_ORDER_OF_PORTS)}
            prometheus = start_prometheus(
                directory / "prometheus", ports + 1, targets, alertmanager.url.removeprefix("http://")
            )
            servers.append(prometheus)
            watch.ready()
            training = Training(watch, directory / "job", OPTIONS)
            try:
                run = tell(watch, prometheus, training)
            finally:
                training.end()
            yield Story(prometheus, alertmanager, people, dead_man, run, began, watch)
        finally:
            for server in servers:
                server.end()
            collector.close()


def start_messages(watch: Installation, sink: HttpSink) -> None:
    """A messages worker that tells the sink."""
    command = midwatch("worker", "messages", "--set=messages.wait=200ms")
    watch.start("messages", *command, MIDWATCH_MESSAGES__WEBHOOK__URL=sink.url)


def tell(watch: Installation, prometheus: Server, training: Training) -> str:
    """The job's two attempts. Prometheus has seen each of their facts when this returns."""
    job = training.start()
    wait_for(lambda: query(prometheus, "midwatch_job_step > 3"), "Prometheus sees steps", SOON)
    (labels, _), *_ = query(prometheus, "midwatch_job_step").found
    run = labels["run"]
    wait_for(lambda: len(training.ledger().starts) == 2, "the rescue", SOON)
    wait_for(lambda: query(prometheus, f'midwatch_job_checkpoint_loaded{{run="{run}"}}'), "the load", SOON)
    wait_for(lambda: query(prometheus, 'midwatch_job_finding{kind="loss_spike"}'), "the spike", SOON)
    wait_for(
        lambda: query(prometheus, f'midwatch_job_state{{run="{run}",state="failed"}} == 1'),
        "the second attempt has failed",
        SOON,
        seen=job.records,
    )
    wait_for(lambda: query(prometheus, 'midwatch_decisions_total{action="stop"}'), "the refusal", SOON)
    wait_for(lambda: query(prometheus, 'midwatch_notices_total{outcome="done"}'), "the message", SOON)
    _write_what_nobody_can_use(watch)
    wait_for(lambda: query(prometheus, "midwatch_dead_letters_total"), "the dead letter", SOON)
    wait_for(lambda: query(prometheus, "midwatch_partition_stopped"), "the stopped partition", SOON)
    return run


def _write_what_nobody_can_use(watch: Installation) -> None:
    """Rubbish for match, and for decide a record of a version to come."""
    topics = watch.settings.topic_names
    verdict = Verdict(state="failed", mode="crash", error_type="unknown")
    incident = Incident("local:ada/other#1", "local:ada/other", 1, "local:1:1", "settled", 1, verdict)
    producer: Any = KafkaProducer(**kafka_options(watch.settings))
    try:
        producer.send(topics.logs, b"no record", key=b"local:ada/other").get(30)
        newer = codec.encode(incident).replace(b'"v":1', b'"v":2')
        producer.send(topics.incidents, newer, key=b"local:ada/other").get(30)
    finally:
        producer.close()
