"""Starts and stops a Kafka and a Redis for this process and one state directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from midwatch.agents.local.embedded.errors import EmbeddedStackError, PortTaken
from midwatch.agents.local.embedded.kafka.broker import KafkaServer
from midwatch.agents.local.embedded.kafka.download import cached_jars
from midwatch.agents.local.embedded.kafka.jars import given_jars, kafka_version, locked_jars
from midwatch.agents.local.embedded.kafka.java import find_java
from midwatch.agents.local.embedded.kafka.progress import ProgressListener
from midwatch.agents.local.embedded.process.ports import LOOPBACK, free_port, is_free
from midwatch.agents.local.embedded.properties import USERNAME
from midwatch.agents.local.embedded.redis import RedisServer, find_redis
from midwatch.agents.local.embedded.state_directory import Node, ServiceDirectory

_TRIES = 3
"""Tries with other ports, if another program takes one between its choice and its use."""


@dataclass(frozen=True, slots=True, repr=False)
class Endpoints:
    """The addresses of the stack. The repr shows no password; `redis_url` and `kafka_password` hold it."""

    kafka: str
    kafka_username: str
    kafka_password: str
    redis_url: str
    state_directory: Path

    def __repr__(self) -> str:
        redis = self.redis_url.rpartition("@")[2].removesuffix("/0")
        return (
            f"Endpoints(kafka={self.kafka!r}, redis={redis!r}, state_directory={str(self.state_directory)!r})"
        )


def default_cache(environment: Mapping[str, str]) -> Path:
    """The directory for downloads: MIDWATCH_CACHE, else midwatch's folder in the user's cache."""
    chosen = environment.get("MIDWATCH_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "midwatch"
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "midwatch"


def _absolute(path: Path) -> Path:
    """The absolute path. The servers run in other directories, where a relative path means another file."""
    return Path(path).expanduser().absolute()


class EmbeddedStack:
    """A Kafka (one KRaft node, SASL PLAIN) and a Redis on loopback. Not thread-safe.

    Both end with this process, however it ends. A given port is used, or the start raises PortTaken. Without
    one, the stack remembers its port in the state directory, and takes another if that is no longer free.

    `jars` is a directory with the locked jars; with it nothing is downloaded. `maven_mirror` is the base of a
    Maven repository. `cache` is the directory for downloads. Each server is an object with `start`, `stop`,
    `kill`, `restart`, `pid` and `running`.

    A crash of the machine can lose what Kafka acknowledged in its last seconds, because Kafka lets the system
    write to the disk later. A crash of a process loses nothing. Redis loses nothing in either case.
    """

    def __init__(
        self,
        state_directory: Path,
        *,
        kafka_port: int | None = None,
        redis_port: int | None = None,
        jars: Path | None = None,
        maven_mirror: str | None = None,
        cache: Path | None = None,
        progress: ProgressListener | None = None,
    ) -> None:
        self._path = Path(state_directory)
        self._kafka_port = kafka_port
        self._redis_port = redis_port
        self._given_jars = _absolute(jars) if jars else None
        self._mirror = maven_mirror
        self._cache = _absolute(cache or default_cache(os.environ))
        self._progress = progress
        self._state: ServiceDirectory | None = None
        self._kafka: KafkaServer | None = None
        self._redis: RedisServer | None = None

    @property
    def kafka(self) -> KafkaServer:
        """The broker. Raises RuntimeError unless the stack was started."""
        if self._kafka is None:
            raise RuntimeError("the stack was not started")
        return self._kafka

    @property
    def redis(self) -> RedisServer:
        """The Redis server. Raises RuntimeError unless the stack was started."""
        if self._redis is None:
            raise RuntimeError("the stack was not started")
        return self._redis

    def start(self) -> Endpoints:
        """Starts both servers and returns when both answer.

        Raises:
            EmbeddedStackError: a server cannot be started. Neither runs then.
        """
        if self._state is not None:
            raise RuntimeError("the stack was started before; stop it first")
        self._state = ServiceDirectory(self._path)
        try:
            return self._start(self._state)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends both servers, Kafka first, and frees the state directory. A second call does nothing."""
        for server in (self._kafka, self._redis):
            if server is not None:
                server.stop()
        self._kafka = self._redis = None
        if self._state is not None:
            self._state.close()
            self._state = None

    def check(self) -> None:
        """Raises an EmbeddedStackError with the reason if one of the servers has ended by itself."""
        for server in (self.kafka, self.redis):
            error = server.failure()
            if error is not None:
                raise error

    def __enter__(self) -> Endpoints:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self, state: ServiceDirectory) -> Endpoints:
        locked = locked_jars()
        version = kafka_version(locked)
        node = replace(state.read_node(version), kafka_version=version)
        java = find_java(os.environ)
        redis = find_redis(os.environ)
        if self._given_jars is not None:
            jars = given_jars(locked, self._given_jars)
        else:
            jars = cached_jars(locked, self._cache, mirror=self._mirror, progress=self._progress)
        for tries_left in reversed(range(_TRIES)):
            node = self._choose_ports(node)
            state.write_node(node)
            self._kafka = KafkaServer(
                state.make("kafka"),
                state.logs / "kafka.log",
                state.lock_descriptor,
                port=node.kafka_port,
                controller_port=node.controller_port,
                password=node.password,
                java=java,
                jars=jars,
                cache=self._cache,
            )
            self._redis = RedisServer(
                state.make("redis"),
                state.logs / "redis.log",
                state.lock_descriptor,
                port=node.redis_port,
                password=node.password,
                executable=redis,
            )
            try:
                self._boot()
            except PortTaken:
                if not tries_left:
                    raise
            else:
                break
        return Endpoints(
            kafka=f"{LOOPBACK}:{node.kafka_port}",
            kafka_username=USERNAME,
            kafka_password=node.password,
            redis_url=f"redis://:{node.password}@{LOOPBACK}:{node.redis_port}/0",
            state_directory=state.path,
        )

    def _boot(self) -> None:
        try:
            self.redis.launch()
            self.kafka.launch()
            self.redis.await_ready()
            self.kafka.await_ready()
        except EmbeddedStackError:
            self.kafka.stop()
            self.redis.stop()
            raise

    def _choose_ports(self, node: Node) -> Node:
        kafka = self._choose("Kafka", self._kafka_port, node.kafka_port, ())
        redis = self._choose("Redis", self._redis_port, node.redis_port, (kafka,))
        controller = self._choose("Kafka", None, node.controller_port, (kafka, redis))
        return replace(node, kafka_port=kafka, redis_port=redis, controller_port=controller)

    @staticmethod
    def _choose(name: str, requested: int | None, remembered: int, taken: tuple[int, ...]) -> int:
        if not requested:
            usable = remembered and remembered not in taken and is_free(remembered)
            return remembered if usable else free_port(taken)
        if not 0 < requested < 1 << 16:
            raise PortTaken(
                f"{requested} is not a port for {name}", remedy="choose a port from 1024 to 65535, or none"
            )
        if requested in taken or not is_free(requested):
            raise PortTaken(
                f"another program uses the port that was chosen for {name}",
                where=f"{LOOPBACK}:{requested}",
                remedy="stop that program, or choose another port or none; midwatch then takes a free one",
            )
        return requested
