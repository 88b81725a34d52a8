"""The Faust app of one agent: proven settings, our transport, and the readers that hold the positions."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import faust
import mode
from faust.types import StreamT
from faust.types.transports import TransportT

from midwatch.streams.counters import Counters
from midwatch.streams.transport import Consumer, Producer, Reader

Task = Callable[[], Awaitable[None]]
Assignment = dict[str, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How one worker process reaches Kafka and what it is called there.

    `group` names the consumer group, and is part of every Redis key of the agent: never rename it.
    `instance_id` makes the member static: a killed worker that returns at once takes its place without
    halting the others; two workers must never share one. `session_timeout_s` is how long a killed
    worker's partitions stay unwatched. `buffer` bounds the records in memory (keep it small where
    records are large chunks). `sends_to` are topics that must exist besides the ones that are read.
    """

    group: str
    bootstrap: str
    username: str = ""
    password: str = field(default="", repr=False)
    ssl_context: ssl.SSLContext | None = None
    session_timeout_s: float = 6.0
    instance_id: str | None = None
    commit_interval_s: float = 1.0
    request_timeout_s: float = 30.0
    buffer: int = 4096
    sends_to: tuple[str, ...] = ()
    directory: Path | None = None
    ready_file: Path | None = None


class App(faust.App):
    """Faust's app with our consumer and producer, and the state that they share with the agents."""

    def __init__(self, settings: WorkerSettings, **options: Any) -> None:
        self.settings = settings
        self.counters = Counters()
        self.readers: dict[str, Reader] = {}
        self.before_start: list[Task] = []
        """Run before the consumer starts, in order; what raises here ends the process."""
        self.on_ready: list[Callable[[Assignment], None]] = []
        """Called after every rebalance, once positions are taken up and records flow."""
        self._closers: list[Task] = []
        super().__init__(settings.group, **options)

    def _new_transport(self) -> TransportT:
        transport = super()._new_transport()
        transport.Consumer = Consumer  # type: ignore[misc]  # Faust takes both classes from the instance
        transport.Producer = Producer  # type: ignore[misc]  # and has no other hook
        return transport

    def read(
        self,
        reader: Reader,
        body: Callable[[StreamT[Any]], Awaitable[None]],
        *,
        tasks: Sequence[Task] = (),
        close: Task | None = None,
    ) -> None:
        """Register what reads a topic: its agent body, and tasks that live as long as the worker.

        A task that raises crashes the worker.
        """
        if reader.topic in self.readers:
            raise ValueError(f"{reader.topic} has a reader already: one agent per topic")
        self.readers[reader.topic] = reader
        topic = self.topic(
            reader.topic,
            key_type=bytes,
            value_type=bytes,
            key_serializer="raw",
            value_serializer="raw",
            allow_empty=True,
        )
        self.agent(topic, name=f"{self.settings.group}.{reader.topic}")(body)
        for task in tasks:
            self.accompany(task)
        if close is not None:
            self._closers.append(close)

    def accompany(self, task: Task) -> None:
        """A coroutine function that runs beside the agents; the worker crashes if it raises."""

        async def guarded() -> None:
            try:
                await task()
            except Exception as error:
                await self.crash(error)

        self.task(guarded)

    async def on_start(self) -> None:
        for hook in self.before_start:
            await hook()
        await super().on_start()

    async def on_stop(self) -> None:
        await super().on_stop()
        for close in self._closers:
            await close()

    def on_rebalance_end(self) -> None:
        super().on_rebalance_end()
        held = {topic: sorted(reader.owned()) for topic, reader in self.readers.items()}
        self.log.info("ready: group %s holds %s", self.settings.group, held)
        for callback in self.on_ready:
            callback(held)


def create_app(settings: WorkerSettings) -> App:
    """An app with every setting that the faults of the real broker asked for. Register agents on it next."""
    directory = settings.directory or Path(tempfile.gettempdir()) / "midwatch-faust"
    options: dict[str, Any] = {}
    if settings.username:
        options["broker_credentials"] = faust.SASLCredentials(
            username=settings.username,
            password=settings.password,
            ssl_context=settings.ssl_context,
            mechanism="PLAIN",
        )
    elif settings.ssl_context is not None:
        options["broker_credentials"] = settings.ssl_context
    return App(
        settings,
        broker=[f"kafka://{server.strip()}" for server in settings.bootstrap.split(",")],
        agent_supervisor=mode.CrashingSupervisor,
        stream_wait_empty=False,
        stream_buffer_maxsize=settings.buffer,
        stream_recovery_delay=0.0,
        broker_session_timeout=settings.session_timeout_s,
        broker_heartbeat_interval=min(0.5, settings.session_timeout_s / 4),
        broker_rebalance_timeout=15.0,
        broker_request_timeout=settings.request_timeout_s,
        # The default (1000 s) makes a spare worker without partitions unable to ever take over.
        broker_max_poll_interval=1e7,
        broker_commit_interval=settings.commit_interval_s,
        broker_max_poll_records=settings.buffer,
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=30_000,
        consumer_group_instance_id=settings.instance_id,
        producer_compression_type="lz4",
        topic_allow_declare=False,
        topic_disable_leader=True,
        cython_optimizations=True,
        web_enabled=False,
        worker_redirect_stdouts=False,
        datadir=str(directory),
        **options,
    )
