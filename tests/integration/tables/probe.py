"""Worker processes whose folds do what the records say, for tests of the running base."""

# ruff: noqa: ARG002 (a Fold is given more than this one needs)

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from midwatch.streams.errors import MidwatchError, NewerRecord
from midwatch.streams.settings.schema import (
    KafkaSettings,
    PartitionSettings,
    RedisSettings,
    Settings,
    TopicSettings,
    WorkerSettings,
)
from midwatch.streams.settings.secret import Secret
from midwatch.streams.worker.app import create_app
from midwatch.streams.worker.fold import PARTITION, Applied, Fields, Message, Send
from midwatch.streams.worker.running import run
from midwatch.streams.worker.stateful import stateful_agent
from midwatch.streams.worker.stateless import stateless_agent

DUE = b"due:"


def probe_settings(options: Mapping[str, Any]) -> Settings:
    return Settings(
        state_directory=Path(options["directory"]),
        kafka=KafkaSettings(
            bootstrap=(options["kafka"],), username=options["username"], password=Secret(options["password"])
        ),
        redis=RedisSettings(url=options["redis_url"]),
        topics=TopicSettings(
            prefix=options["prefix"], partitions=PartitionSettings(logs=2, events=4, incidents=2)
        ),
        worker=WorkerSettings(
            session_timeout=options["session_timeout"], heartbeat_interval=0.3, commit_interval=0.3
        ),
    )


@dataclass(frozen=True)
class ObeyingFold:
    """Counts per key and tells it on; `boom` raises, `newer` cannot be read, `in N` sets a timer."""

    sends_to: str

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:
        due = {key for key, at in _dues(partition).items() if at <= message.now_ms}
        return due if message.key is None else due | {message.key}

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        value = message.value or b""
        if value == b"boom":
            raise RuntimeError("boom")
        if value == b"newer":
            raise NewerRecord("a record of version 9")
        timers: dict[bytes, bytes | None] = {}
        sends = []
        for key, at in sorted(_dues(states[PARTITION]).items()):
            if at <= message.now_ms:
                timers[DUE + key] = None
                sends.append(Send(self.sends_to, key, b"fired %d, now %d" % (at, message.now_ms)))
        if message.key is None:
            return Applied({PARTITION: timers}, tuple(sends))
        if value.startswith(b"in "):
            timers[DUE + message.key] = b"%d" % (message.now_ms + int(value[3:]))
        count = b"%d" % (int(states[message.key].get(b"count", b"0")) + 1)
        sends.append(Send(self.sends_to, message.key, count))
        return Applied({PARTITION: timers, message.key: {b"count": count}}, tuple(sends))

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        return Applied({message.key: {b"held": b"1"}}) if message.key else Applied()

    def next_deadline(self, partition: Fields) -> int | None:
        return min(_dues(partition).values(), default=None)

    def tick_value(self) -> bytes:
        return b"tick"


def _dues(partition: Fields) -> dict[bytes, int]:
    return {name.removeprefix(DUE): int(at) for name, at in partition.items() if name.startswith(DUE)}


def echo(sends_to: str, message: Message) -> tuple[Send, ...]:
    """The stateless counterpart: says again what it hears."""
    match message.value:
        case b"boom":
            raise RuntimeError("boom")
        case b"large":
            return (Send(sends_to, message.key, b"x" * 2_000_000),)
    return (Send(sends_to, message.key, message.value),)


def main(options: Mapping[str, Any]) -> None:
    settings = probe_settings(options)
    names = settings.topic_names
    app = create_app(settings, f"{options['prefix']}-{options['kind']}")
    if options["kind"] == "stateful":
        stateful_agent(app, ObeyingFold(names.incidents), topic=names.events)
    else:
        stateless_agent(app, lambda message: echo(names.events, message), topic=names.logs)
    try:
        run(app, ready_file=Path(options["ready_file"]))
    except MidwatchError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(name)s %(message)s")
    main(json.loads(sys.argv[1]))
