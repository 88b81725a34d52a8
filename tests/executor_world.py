"""A real executor on real Kafka and Redis: orders go in, outcomes and effects are counted from outside.

A folder's conftest imports `world`. Each test has topics, a state directory and jobs of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from midwatch.agents.launch.job_spec import RunRequest, Started
from midwatch.agents.launch.start import start
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.agents.schedulers.calls import SystemCaller
from midwatch.agents.schedulers.local.effect_file import Record, read_all
from midwatch.agents.signing import PRIVATE_NAME, PUBLIC_NAME, ensure_keys, spec_hash
from midwatch.streams.host.process_table import group_members
from midwatch.streams.records import Command, DeadLetter, Outcome, SchedulerFact
from midwatch.streams.records.codec import decode, encode
from midwatch.streams.records.effect_keys import command_id
from midwatch.streams.services.reachable import kafka_options, redis_client
from midwatch.streams.services.topic_admin import make_topics
from midwatch.streams.settings.file import load_settings
from midwatch.streams.settings.schema import Settings
from processes import alive, wait_for

TRAINER = Path(__file__).parents[1] / "agents" / "midwatch" / "agents" / "drill" / "trainer.py"


class World:
    """One installation: settings, keys, topics, a state directory, and its executor processes."""

    def __init__(
        self,
        directory: Path,
        stack: Endpoints,
        mode: str = "act",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.file = directory / "midwatch.yaml"
        secret, cache = directory / "kafka.password", directory / "redis.password"
        redis_password, _, address = stack.redis_url.removeprefix("redis://").rpartition("@")
        for file, text in ((secret, stack.kafka_password), (cache, redis_password.rpartition(":")[2])):
            file.write_text(text)
            file.chmod(0o600)
        self.file.write_text(
            json.dumps(
                {
                    "state_directory": str(directory / "state"),
                    "kafka": {
                        "bootstrap": [stack.kafka],
                        "username": stack.kafka_username,
                        "password_file": str(secret),
                    },
                    "redis": {"url": f"redis://{address}", "password_file": str(cache)},
                    "topics": {
                        "prefix": f"t{secrets.token_hex(4)}",
                        "partitions": dict.fromkeys(
                            ("logs", "events", "incidents", "decisions", "commands", "specs"), 2
                        ),
                    },
                    "watch": {"mode": mode},
                    "executor": {"poll": "1s"},
                }
            )
        )
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("MIDWATCH_", "SLURM_"))},
            **(environment or {}),
            "MIDWATCH_CONFIG": str(self.file),
        }
        self.settings: Settings = load_settings(self.file, environment={})
        make_topics(self.settings)
        self.signer = ensure_keys(self.settings.state_directory)
        self._producer: Any = KafkaProducer(**kafka_options(self.settings), acks="all")
        self._readers: dict[str, tuple[Any, list[Any]]] = {}
        self._executors: list[subprocess.Popen[bytes]] = []
        self.log = directory / "executor.log"

    def executor(
        self, failpoint: str = "", program: str = "", state: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """`midwatch executor` as a process; dies at the failpoint if one is named.

        `program`, Python text, may stand in its place; `state` is another host's state directory.
        """
        extra = {"MIDWATCH_FAILPOINT": failpoint} if failpoint else {}
        if state is not None:
            state.mkdir()
            for name in (PRIVATE_NAME, PUBLIC_NAME):
                shutil.copy(self.settings.state_directory / name, state / name)
            extra["MIDWATCH_STATE_DIRECTORY"] = str(state)
        ready = (state or self.settings.state_directory) / "run" / "executor.ready"
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", *(["-c", program] if program else ["-m", "midwatch", "executor"])],
                env=self.environment | extra,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._executors.append(process)
        wait_for(
            lambda: (
                process.poll() is not None
                or (ready.exists() and json.loads(ready.read_text())["pid"] == process.pid)
            ),
            f"the executor is ready\n{self.log.read_text()[-2000:]}",
            60,
        )
        return process

    def run(self, *argv: str, job: str | None = None, armed: bool = True, **more: Any) -> Started:
        """`midwatch run` in this process; with `job` "" the job has no name of its own."""
        name = f"j{secrets.token_hex(4)}" if job is None else job
        wanted = RunRequest(argv=argv, cwd=self.directory, job=name, armed=armed, **more)
        return start(wanted, self.settings, SystemCaller())

    def train(self, *arguments: str, job: str | None = None, armed: bool = True) -> tuple[Started, Path]:
        """The drill's trainer with two ranks; its checkpoint directory with the ledger comes back."""
        name = f"j{secrets.token_hex(4)}" if job is None else job
        checkpoints = self.directory / f"checkpoints-{secrets.token_hex(4)}"
        argv = [sys.executable, str(TRAINER), "--checkpoint-dir", str(checkpoints), "--ranks", "2"]
        argv += ["--iterations", "30", "--iteration-ms", "10", "--collective-timeout-ms", "500", *arguments]
        return self.run(*argv, job=name, armed=armed, checkpoint_directory=str(checkpoints)), checkpoints

    def order(self, started: Started, attempt: int = 1, seq: int = 1, **changes: Any) -> Command:
        """A signed restart of this start, as decide would write it; `changes` are made before signing."""
        now = int(time.time() * 1000)
        command = Command(
            id=command_id(started.spec.job, attempt, seq),
            job=started.spec.job,
            attempt=attempt,
            seq=seq,
            action="restart",
            incarnation=started.incarnation,
            incident=f"{started.spec.job}#{attempt}",
            revision=1,
            reason="nccl_timeout is transient",
            not_before_ms=now,
            expires_ms=now + 300_000,
            issuer="test",
            spec=spec_hash(started.spec),
            bundle="",
            restart_limit=3,
        )
        return self.signer.sign(replace(command, **changes))

    def send(self, command: Command) -> None:
        topic = self.settings.topic_names.commands
        self._producer.send(topic, key=command.job.encode(), value=encode(command)).get(timeout=30)

    def events(self, job: str) -> list[Any]:
        """All that `events` holds of the job now, in order."""
        topic = self.settings.topic_names.events
        return [decode(message.value) for message in self._read(topic) if message.key == job.encode()]

    def logs(self) -> list[tuple[bytes, tuple[tuple[str, bytes], ...]]]:
        """Value and headers of all messages of `logs`."""
        return [(m.value, tuple(m.headers)) for m in self._read(self.settings.topic_names.logs)]

    def dead_letters(self) -> list[DeadLetter]:
        """All that was set aside."""
        return [decode(message.value) for message in self._read(self.settings.topic_names.dead)]

    def _read(self, topic: str) -> list[Any]:
        """All that the topic holds now. A look reads what is new since the last one, so it costs little."""
        if topic not in self._readers:
            consumer: Any = KafkaConsumer(
                **kafka_options(self.settings), group_id=None, auto_offset_reset="earliest"
            )
            consumer.assign([TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)])
            consumer.seek_to_beginning()
            self._readers[topic] = consumer, []
        consumer, found = self._readers[topic]
        partitions = consumer.assignment()
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(p) < ends[p] for p in partitions):
            for messages in consumer.poll(timeout_ms=100).values():
                found += messages
        return list(found)

    def outcomes(self, command: Command) -> list[Outcome]:
        told = self.events(command.job)
        return [e for e in told if isinstance(e, Outcome) and e.command == command.id]

    def await_outcome(self, command: Command, *states: str, limit: float = 60) -> Outcome:
        """The first outcome of the order in one of the states."""
        found: list[Outcome] = []

        def there() -> bool:
            found[:] = [o for o in self.outcomes(command) if o.state in states]
            return bool(found)

        try:
            wait_for(there, f"{command.action} {states}", limit)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.log.read_text()[-4000:]}") from None
        return found[0]

    def facts(self, job: str) -> list[SchedulerFact]:
        return [e for e in self.events(job) if isinstance(e, SchedulerFact)]

    def effects(self) -> tuple[Record, ...]:
        """Every start that was ever made on `local`."""
        return read_all(self.settings.state_directory)

    def await_end(self, started: Started, limit: float = 60) -> None:
        """Until the watcher has said that it ended."""
        wait_for(
            lambda: any(
                f.ended and f.incarnation == started.incarnation for f in self.facts(started.spec.job)
            ),
            f"{started.incarnation} ended",
            limit,
        )

    def forget(self) -> None:
        """Redis loses all that it has of this installation, as after a disk was lost."""
        client: Any = redis_client(self.settings)
        # In one command: a loss takes everything at once, and the executor must not see half of one.
        client.delete(*client.scan_iter(f"{self.settings.topics.prefix}:*"))
        client.close()

    def close_executors(self) -> None:
        for process in self._executors:
            process.kill()
            process.wait()

    def close(self) -> None:
        self.close_executors()
        self._producer.close()
        for consumer, _ in self._readers.values():
            consumer.close()
        for record in self.effects():
            if alive(record.pid) or group_members(record.pid):
                os.killpg(record.pid, signal.SIGKILL)


def midwatch(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """One command line, as a person of this installation types it."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "midwatch", *words],
        env=world.environment,
        cwd=world.directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def ledger(checkpoints: Path, what: str = "") -> list[dict[str, Any]]:
    """The training's own words: the judge of what really ran."""
    file = checkpoints / "ledger.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [row for row in rows if not what or row["event"] == what]


@pytest.fixture
def world(tmp_path: Path, stack: Endpoints) -> Iterator[World]:
    """An installation that may act."""
    made = World(tmp_path, stack)
    yield made
    made.close()


@pytest.fixture
def observing(tmp_path: Path, stack: Endpoints) -> Iterator[World]:
    """An installation whose watch is in observe mode."""
    made = World(tmp_path, stack, mode="observe")
    yield made
    made.close()
