"""kill -9 of the messages worker around a delivery: nothing is lost, and a repeat has the same id."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from faults.chaos.rounds import AT_LEAST_TWO, seed_of
from faults.chaos.tally import counting
from integration.chain.installation import Installation, installation
from integration.messages.messages_worker import SOON, send, start
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Decision, Forwarded
from processes import wait_for
from sinks import HttpSink, http_sink
from unit.agents.messages.records import decision, incident

pytestmark = pytest.mark.integration

JOBS = 5


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        yield made


def test_a_worker_killed_behind_a_delivery_loses_no_message(watch: Installation) -> None:
    seed = seed_of("messages")
    chance, jobs = random.Random(seed), list[str]()
    with http_sink() as sink, counting("messages", "messages killed behind a delivery", seed) as count:
        for number in range(AT_LEAST_TWO):
            start(watch, WEBHOOK__URL=sink.url, failpoint=f"told:{chance.randint(1, JOBS)}")
            jobs.extend(_fail(watch, number))
            doomed = watch.processes["messages"]
            wait_for(lambda one=doomed: one.poll() is not None, "it dies", SOON)  # type: ignore[misc]  # mypy sees no type in a default
            assert doomed.returncode == -signal.SIGKILL
            count.hit("failpoint told")
        start(watch, WEBHOOK__URL=sink.url)
        wait_for(lambda: set(jobs) <= _told(sink).keys(), f"{len(jobs)} messages", SOON)
        told = _told(sink)
        repeats = sum(told.values()) - len(told)
        ids = {each.json["id"] for each in sink.requests}
        count.add(messages=len(jobs), lost=len(set(jobs) - told.keys()), repeats=repeats)
        assert repeats >= 1
        assert len(ids) == len(jobs), "a message that came again has the same id"


def _fail(watch: Installation, number: int) -> list[str]:
    """Some jobs fail, each in a state of its own."""
    jobs = [f"local:ada/llm-{number}-{n}" for n in range(JOBS)]
    records: list[Decision | Forwarded] = []
    for job in jobs:
        ended = incident().record
        records += [Forwarded(replace(ended, job=job)), replace(decision(), job=job)]
    send(watch, *records)
    return jobs


def _told(sink: HttpSink) -> Counter[str]:
    return Counter(str(each.json["job"]) for each in sink.requests)
