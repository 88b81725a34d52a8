"""The place where the soak is played: topics, workers, traffic, and facts that can be waited for."""

from __future__ import annotations

import os
import random
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from faults.soak.supervised import SupervisedWorker
from faults.soak.traffic import Traffic
from faults.soak.verdict import PARTITIONS, Published, StageVerdict, judge, read_published, read_stage
from faults.soak.worker import GROUP, KNOWS_COORDINATOR, soak_settings
from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.services.topic_admin import make_topics
from midwatch.streams.worker.tables import keys
from midwatch.streams.worker.tables.script import parse_offset
from processes import wait_for

PATIENCE_S = 120.0


@dataclass(frozen=True)
class Outcome:
    """What the soak found in the end."""

    sent: int
    first: StageVerdict
    second: StageVerdict
    published: Published
    unpublished: int

    @property
    def complaints(self) -> list[str]:
        """Everything that is not exactly once; empty if all is."""
        found = []
        for name, stage in (("first", self.first), ("second", self.second)):
            if not stage.exact:
                found.append(f"{name} stage: {stage}")
        if (ids := len(self.published.contents)) != self.sent:
            found.append(f"{ids} ids between the stages, {self.sent} records sent")
        if self.published.conflicting:
            found.append(f"{self.published.conflicting} ids with two contents")
        if self.unpublished:
            found.append(f"{self.unpublished} records left in the outbox")
        return found


@dataclass
class Theatre:
    """Two stages over 8 partitions, and whoever works on them."""

    servers: EmbeddedStack
    endpoints: Endpoints
    directory: Path
    variant: str
    rate: float
    seed: int
    workers: dict[str, SupervisedWorker] = field(default_factory=dict)
    ended: list[SupervisedWorker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.options = {
            "prefix": f"soak-{secrets.token_hex(4)}",
            "kafka": self.endpoints.kafka,
            "username": self.endpoints.kafka_username,
            "password": self.endpoints.kafka_password,
            "redis_url": self.endpoints.redis_url,
            "variant": self.variant,
            "directory": str(self.directory),
        }
        settings = soak_settings(self.options)
        make_topics(settings)
        self.group = f"{self.options['prefix']}-{GROUP}"
        self.first, self.second = settings.topic_names.events, settings.topic_names.incidents
        self.connection: dict[str, Any] = kafka_options(settings)
        self.redis = redis.Redis.from_url(self.endpoints.redis_url, socket_timeout=5)
        self.traffic = Traffic(self.connection, self.first, self.rate, self.seed)
        self.random = random.Random(self.seed)
        self._memory = str(self.redis.config_get("maxmemory")["maxmemory"])
        self._ends = KafkaConsumer(**self.connection, enable_auto_commit=False)

    # -- workers

    def start_worker(self, name: str) -> SupervisedWorker:
        worker = SupervisedWorker(f"{name}{len(self.ended)}", self.options, self.directory)
        self.workers[name] = worker
        return worker

    def end_worker(self, name: str) -> int:
        worker = self.workers.pop(name)
        self.ended.append(worker)
        return worker.end()

    def counter(self, name: str) -> int:
        """Summed over every process that ever worked here."""
        workers = [*self.ended, *self.workers.values()]
        return sum(worker.counters().get(name, 0) for worker in workers)

    # -- what only a fault does to Redis

    def freeze_redis(self) -> None:
        """It keeps its connections and answers nobody."""
        os.kill(self.servers.redis.pid, signal.SIGSTOP)

    def thaw_redis(self) -> None:
        os.kill(self.servers.redis.pid, signal.SIGCONT)

    def starve_redis(self) -> None:
        """It reads, and refuses whatever needs memory."""
        self.redis.config_set("maxmemory", "1")

    def feed_redis(self) -> None:
        self.redis.config_set("maxmemory", self._memory)

    # -- facts

    def reached(self, topic: str) -> int:
        """How many records of the topic are part of its state, by the offsets in Redis."""
        pipe = self.redis.pipeline(transaction=False)
        for partition in range(PARTITIONS):
            pipe.get(keys.offset_key(self.group, topic, partition))
        return sum(parse_offset(stored)[0] + 1 for stored in pipe.execute())

    def how_far(self) -> tuple[int, int]:
        """How many records are part of the state of each stage."""
        return self.reached(self.first), self.reached(self.second)

    def end(self, topic: str) -> int:
        """How many records the topic has."""
        return sum(self._ends.end_offsets([TopicPartition(topic, p) for p in range(PARTITIONS)]).values())

    def committed(self, topic: str) -> int:
        """How many records of the topic the group has committed in Kafka."""
        admin = KafkaAdminClient(**self.connection)
        told = admin.list_group_offsets({self.group: [TopicPartition(topic, p) for p in range(PARTITIONS)]})
        admin.close()
        return sum(offset.offset for offset in told[self.group].values())

    def unpublished(self) -> int:
        """Records that wait in the outbox of the first stage."""
        names = [keys.outbox_key(self.group, self.first, p) for p in range(PARTITIONS)]
        return sum(int(self.redis.xlen(name)) for name in names)

    def all_held(self) -> bool:
        """Whether the present processes read every partition between them."""
        return sum(worker.held() for worker in self.workers.values()) == 2 * PARTITIONS

    def who_holds(self) -> dict[str, int]:
        """How many partitions each worker says it reads."""
        return {name: worker.held() for name, worker in self.workers.items()}

    def all_read(self, what: str, also: Callable[[], bool] = lambda: True) -> None:
        """Wait until the present processes read every partition between them, and this holds too."""
        wait_for(lambda: also() and self.all_held(), what, seen=self.who_holds)

    def at_work(self, for_s: float = 2.0) -> None:
        """Wait until every worker lives, reads its share and knows its group, for so long that none is just
        crashing."""
        since = time.monotonic()

        def steady() -> bool:
            nonlocal since
            present = self.workers.values()
            heard = all(worker.held() and worker.counter(KNOWS_COORDINATOR) for worker in present)
            if not (self.all_held() and heard):
                since = time.monotonic()
            return time.monotonic() - since >= for_s

        wait_for(steady, "all workers at work", seen=self.who_holds)

    def level(self) -> bool:
        """Whether both stages have done everything that is there at this moment."""
        try:
            goal = self.end(self.first)
            done = self.reached(self.first) >= goal and not self.unpublished()
            return done and self.reached(self.second) >= self.end(self.second)
        except (redis.RedisError, KafkaError):
            return False

    def catches_up(self, within_s: float = PATIENCE_S) -> float:
        """Seconds until everything that is acknowledged now went through both stages."""
        began, goal = time.monotonic(), self.traffic.acknowledged

        def passed() -> bool:
            try:
                if self.reached(self.first) < goal or self.unpublished() > self.rate:
                    return False
                return self.reached(self.second) >= goal
            except redis.RedisError:
                return False

        wait_for(passed, f"{goal} records through both stages", within_s, seen=self.how_far)
        return time.monotonic() - began

    # -- the end

    def finish(self, at_least: int = 0) -> int:
        """End the traffic and wait until both stages have all of it; how many were sent."""
        sent = self.traffic.end(at_least)
        assert not self.traffic.errors, self.traffic.errors[:3]
        wait_for(self.level, "both stages level with the traffic", seen=self.how_far)
        return sent

    def restore(self) -> None:
        """Servers run and workers are awake, wherever a fault was left."""
        self.servers.kafka.start()
        self.servers.redis.start()
        self.thaw_redis()
        self.feed_redis()
        for worker in self.workers.values():
            worker.signal(signal.SIGCONT)

    def outcome(self, sent: int) -> Outcome:
        right_first, right_second = self.traffic.expected()
        return Outcome(
            sent=sent,
            first=judge(read_stage(self.redis, self.group, self.first), right_first),
            second=judge(read_stage(self.redis, self.group, self.second), right_second),
            published=read_published(self.connection, self.second),
            unpublished=self.unpublished(),
        )

    def close(self) -> None:
        self.traffic.close()
        for name in list(self.workers):
            self.end_worker(name)
        self._ends.close()
        self.redis.close()


@contextmanager
def theatre(
    embedded: tuple[EmbeddedStack, Endpoints], directory: Path, *, variant: str, rate: float, seed: int
) -> Iterator[Theatre]:
    """A theatre whose servers run and whose workers are gone afterwards, whatever happened in it."""
    servers, endpoints = embedded
    stage = Theatre(servers, endpoints, directory, variant, rate, seed)
    try:
        yield stage
    finally:
        stage.restore()
        stage.close()
