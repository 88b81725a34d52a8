"""The Faust app of one agent: its settings, its transport, and the readers that keep its positions."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import faust
import mode
from faust.tables.manager import TableManager
from faust.types import StreamT
from faust.types.transports import TransportT

from midwatch.streams.settings.schema import KafkaSettings, Settings
from midwatch.streams.telemetry.meter import Export
from midwatch.streams.telemetry.start import open_telemetry
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.exported import export_counters
from midwatch.streams.worker.transport import Consumer, PartitionReader, Producer

Task = Callable[[], Awaitable[None]]
Assignment = dict[str, list[int]]


class NoTables(TableManager):
    """Faust's table manager without tables: a start does not wait a second for tables to be registered."""

    async def on_start(self) -> None:
        await self._update_channels()
        await self.recovery.start()


class App(faust.App):
    """Faust's app with our consumer and producer, and the state that they share with the agents."""

    def __init__(self, settings: Settings, group: str, **options: Any) -> None:
        self.settings = settings
        self.group = group
        self.counters = Counters()
        self.telemetry: Export | None = None
        """What this process exports with; None while telemetry is off."""
        self.readers: dict[str, PartitionReader] = {}
        self.before_start: list[Task] = []
        """Tasks that run in order before the consumer starts; an exception in one ends the process."""
        self.on_ready: list[Callable[[Assignment], None]] = []
        """Callbacks that run after every rebalance, once the positions are set and records flow."""
        self.keeps_state = False
        """Whether one of its agents needs Redis."""
        self._closers: list[Task] = []
        super().__init__(group, **options)

    def _new_transport(self) -> TransportT:
        transport = super()._new_transport()
        transport.Consumer = Consumer  # type: ignore[misc]  # Faust takes both classes from the instance
        transport.Producer = Producer  # type: ignore[misc]  # and has no other hook
        return transport

    def read(
        self,
        reader: PartitionReader,
        body: Callable[[StreamT[Any]], Awaitable[None]],
        *,
        tasks: Sequence[Task] = (),
        close: Task | None = None,
    ) -> None:
        """Register the reader of a topic, its agent body, and tasks that live as long as the worker.

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
        self.agent(topic, name=f"{self.group}.{reader.topic}")(body)
        for task in tasks:
            self.accompany(task)
        if close is not None:
            self._closers.append(close)

    def accompany(self, task: Task) -> None:
        """Run a coroutine function beside the agents; the worker crashes if it raises."""

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
        assignment = {topic: sorted(reader.owned()) for topic, reader in self.readers.items()}
        self.log.info("ready: group %s reads the partitions %s", self.group, assignment)
        for callback in self.on_ready:
            callback(assignment)


def create_app(settings: Settings, group: str, *, buffer: int = 4096) -> App:
    """An app with the settings that faults of a real broker proved necessary. Register agents on it next.

    `group` names the consumer group and is part of every Redis key of the agent: never rename it.
    `buffer` bounds the records in memory; keep it small where records are large (chunks of lines).
    """
    worker = settings.worker
    app = App(
        settings,
        group,
        broker=[f"kafka://{server}" for server in settings.kafka.bootstrap],
        broker_credentials=_credentials(settings.kafka),
        agent_supervisor=mode.CrashingSupervisor,
        TableManager=NoTables,
        stream_wait_empty=False,
        stream_buffer_maxsize=buffer,
        stream_recovery_delay=0.0,
        broker_session_timeout=worker.session_timeout,
        broker_heartbeat_interval=min(worker.heartbeat_interval, worker.session_timeout / 3),
        broker_rebalance_timeout=15.0,
        broker_request_timeout=max(30.0, worker.session_timeout),
        # The default (1000 s) makes a spare worker without partitions unable to ever take over.
        broker_max_poll_interval=1e7,
        broker_commit_interval=worker.commit_interval,
        broker_max_poll_records=buffer,
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=30_000,
        consumer_group_instance_id=worker.instance_id or None,
        producer_compression_type="lz4",
        topic_allow_declare=False,
        topic_disable_leader=True,
        cython_optimizations=True,
        web_enabled=False,
        worker_redirect_stdouts=False,
        datadir=str(settings.state_directory.expanduser() / "faust"),
    )
    if settings.telemetry.on:
        app.telemetry = open_telemetry(settings, group.rpartition(".")[2])
    if app.telemetry is not None:
        export_counters(app.telemetry.meter, app.counters, group)
    return app


def _credentials(kafka: KafkaSettings) -> faust.SASLCredentials | ssl.SSLContext | None:
    context: ssl.SSLContext | None = None
    if kafka.tls:
        context = ssl.create_default_context(cafile=kafka.ca_file)
        if kafka.certificate_file is not None:
            context.load_cert_chain(kafka.certificate_file, kafka.key_file)
    if not kafka.username:
        return context
    return faust.SASLCredentials(
        username=kafka.username,
        password=kafka.password.reveal(),
        ssl_context=context,
        mechanism=kafka.mechanism,
    )
