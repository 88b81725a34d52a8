"""Redis is lost twice in the life of one job: nothing is done twice, no budget comes back, and it goes on.

The training dies in every attempt. Its own ledger is the judge: with a budget of three restarts it may be
started four times, whatever Redis has forgotten in between.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from kafka import KafkaAdminClient, TopicPartition

from integration.chain.installation import Installation, Job, installation
from integration.chain.training import PROCESSES, Training
from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints
from midwatch.agents.query.topic_reader import messages_of
from midwatch.agents.replay.recording.export import export
from midwatch.agents.replay.recording.refold import refold
from midwatch.agents.rulesets.bundles import limits_of, policies_of
from midwatch.streams.records import Decision, Snapshot, codec
from processes import wait_for

SOON = 150.0


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        for name in PROCESSES:
            made.start(name)
        made.ready()
        yield made


def _records(watch: Installation, topic: str, job: str) -> list[tuple[int, int, object]]:
    """(partition, offset, record) of the job, each id once."""
    found: dict[bytes, tuple[int, int, object]] = {}
    for message in messages_of(watch.settings, topic, job.encode()):
        if message.key == job.encode():
            name = dict(message.headers or ()).get("id", b"%d" % message.offset)
            found.setdefault(name, (message.partition, message.offset, codec.decode(message.value)))
    return list(found.values())


def _decisions(watch: Installation, job: str) -> list[Decision]:
    made = [record for _, _, record in _records(watch, watch.settings.topic_names.decisions, job)]
    return [decision for decision in made if isinstance(decision, Decision)]


def _carried(watch: Installation, job: str) -> list[int]:
    """The attempts that carries sum up."""
    found = _records(watch, watch.settings.topic_names.events, job)
    return [carry.attempt for _, _, carry in found if isinstance(carry, Snapshot)]


def _forget_the_past(watch: Installation, admin: KafkaAdminClient, job: str) -> Snapshot:
    """Retention takes all that lies before the last carry."""
    events = watch.settings.topic_names.events
    partition, offset, carry = [r for r in _records(watch, events, job) if isinstance(r[2], Snapshot)][-1]
    admin.delete_records({TopicPartition(events, partition): offset})
    assert isinstance(carry, Snapshot)
    return carry


def _whole_name(job: Job) -> str:
    story = job.story()
    assert story is not None
    return story.job


def test_redis_is_lost_twice_and_the_job_is_rescued_as_often_as_its_budget_says(
    watch: Installation, servers: EmbeddedStack, stack: Endpoints, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    options = ("--iterations=100", "--iteration-ms=200", "--save-every=1000", "--fault=nccl@40")
    training = Training(watch, tmp_path / "job", options)
    try:
        job = training.start()

        wait_for(lambda: len(training.ledger().starts) == 2, "the first rescue", SOON)
        name = _whole_name(job)
        watch.forgive("without Redis no worker lives")
        redis.Redis.from_url(stack.redis_url).flushall()

        wait_for(lambda: len(training.ledger().starts) == 3, "the second rescue", SOON)
        wait_for(lambda: 3 in _carried(watch, name), "the third attempt is summed up", SOON)
        carry = _forget_the_past(watch, admin, name)
        assert (carry.attempt, len(carry.incarnations)) == (3, 3)
        servers.redis.kill()
        _empty(servers.redis.directory)
        servers.redis.start()

        wait_for(lambda: len(training.ledger().starts) == 4, "the third rescue", SOON)
        wait_for(lambda: _decisions(watch, name)[-1].action == "stop", "the budget is spent", SOON)
        last = _decisions(watch, name)[-1]
        assert (last.attempt, "3 of 3" in last.reason) == (4, True)
        assert len(training.ledger().starts) == 4
        assert {d.attempt for d in _decisions(watch, name) if d.action == "restart"} == {1, 2, 3}

        recording = export(watch.settings, name)
        assert recording.head.events.cut_ms is not None
        book = Rulebook(policies_of(watch.settings), lambda c: c, watch.settings.policy, acting=True)
        again = refold(recording, limits_of(watch.settings), book)
        assert list(again.decisions) == _decisions(watch, name)
    finally:
        training.end()


def _empty(directory: Path) -> None:
    for entry in directory.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
