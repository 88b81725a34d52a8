"""A real `midwatch ship` on a real Kafka, and what a consumer of its topic sees."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic

from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.lines.normalise import places
from midwatch.streams.records import Chunk, Heartbeat
from midwatch.streams.records.codec import decode_log
from processes import wait_for

PARTITIONS = 3


class Seen(NamedTuple):
    """One line as a consumer finds it."""

    generation: str
    offset: int
    number: int
    text: str


class Topic:
    """A topic of lines of its own, and everything that came to it so far."""

    def __init__(self, stack: Endpoints) -> None:
        self.prefix = f"ship-{secrets.token_hex(4)}"
        self.name = f"{self.prefix}.logs"
        self._stack = stack
        client = {
            "bootstrap_servers": stack.kafka,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": stack.kafka_username,
            "sasl_plain_password": stack.kafka_password,
        }
        # A client of its own: one that saw the broker die in an earlier test stays away for a while.
        admin = KafkaAdminClient(**client)
        admin.create_topics([NewTopic(self.name, num_partitions=PARTITIONS, replication_factor=1)])
        admin.close()
        self._consumer = KafkaConsumer(auto_offset_reset="earliest", **client)
        self._consumer.assign([TopicPartition(self.name, p) for p in range(PARTITIONS)])
        self.records: list[tuple[int, Chunk | Heartbeat]] = []

    def environment(self) -> dict[str, str]:
        """What a shipper must know to send here."""
        return {
            "MIDWATCH_KAFKA__BOOTSTRAP": self._stack.kafka,
            "MIDWATCH_KAFKA__USERNAME": self._stack.kafka_username,
            "MIDWATCH_KAFKA__PASSWORD": self._stack.kafka_password,
            "MIDWATCH_TOPICS__PREFIX": self.prefix,
        }

    def read(self) -> Topic:
        """Takes what has come since the last call."""
        for messages in self._consumer.poll(timeout_ms=200).values():
            for message in messages:
                record = decode_log(message.value, tuple(message.headers))
                self.records.append((message.partition, record))
        return self

    @property
    def beats(self) -> list[Heartbeat]:
        return [record for _, record in self.records if isinstance(record, Heartbeat)]

    @property
    def lines(self) -> list[Seen]:
        return [line for _, record in self.records if isinstance(record, Chunk) for line in lines_of(record)]

    def wait_for_lines(self, texts: set[str], limit: float = 60.0) -> None:
        """Returns when all these lines have come, each at least once."""
        missing = set(texts)

        def come() -> bool:
            known = len(self.records)
            self.read()
            for _, record in self.records[known:]:
                if isinstance(record, Chunk):
                    missing.difference_update(line.text for line in lines_of(record))
            return not missing

        missing -= {line.text for line in self.lines}
        wait_for(come, f"{len(texts)} lines on the topic, missing {sorted(missing)[:3]}", limit)

    def close(self) -> None:
        self._consumer.close()


def lines_of(chunk: Chunk) -> Iterator[Seen]:
    """The lines of a chunk that are its own."""
    position = 0
    for section in chunk.sections:
        text = chunk.text[position : position + section.size]
        position += section.size
        lines = text.split(b"\n")[:-1]
        starts, at = [], 0
        for line in lines:
            starts.append(at)
            at += len(line) + 1
        for place, line in zip(places(section, text, starts), lines, strict=True):
            if place.index >= section.context:
                yield Seen(section.generation.key(), place.offset, place.number, line.decode())


class Shipper:
    """`midwatch ship` as a process; `state` survives it."""

    def __init__(self, topic: Topic, state: Path, *arguments: str | Path, job: str = "run") -> None:
        self._topic = topic
        self.state = state
        self.said = state.with_suffix(".said")
        self.program: tuple[str, ...] = ("-m", "midwatch")
        """What Python runs."""
        self._argv = [
            *("ship", "--job", job, "--node", "node1"),
            *(f"--state-directory={state}", "--set=ship.interval=0.3s", "--set=ship.poll=0.05s"),
            *("--set=ship.chunk_age=0.05s", *map(str, arguments)),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **environment: str) -> Shipper:
        """Starts it, or starts it again."""
        with self.said.open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, *self.program, *self._argv],
                env=os.environ | self._topic.environment() | environment,
                stderr=said,
            )
        return self

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def stop(self) -> int:
        """Tells it that the job has ended; its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(40)

    def kill(self) -> None:
        """Whatever state it is in, it is gone."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def said_so_far(self) -> str:
        """What it told people."""
        return self.said.read_text()

    def checkpoints(self) -> list[Path]:
        """The checkpoint, once it was saved."""
        return list(self.state.glob("ship/*/*/checkpoint.json"))

    def memory(self) -> int:
        """Bytes resident now."""
        return self._status("VmRSS") * 1024

    def await_turns(self, count: int = 30) -> None:
        """Returns when it has slept and woken that often: it took note of all that was there before."""
        begun = self._status("voluntary_ctxt_switches")
        wait_for(lambda: self._status("voluntary_ctxt_switches") >= begun + count, f"{count} turns")

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
        raise AssertionError("the shipper is gone")


def numbered(start: int, stop: int) -> list[str]:
    """Lines that tell themselves apart."""
    return [f"iteration {i:07d} | loss: 2.{i % 997:03d}" for i in range(start, stop)]


def append(path: Path, lines: Sequence[str]) -> None:
    """All of them in one write, as a busy writer's buffer does."""
    with path.open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))
