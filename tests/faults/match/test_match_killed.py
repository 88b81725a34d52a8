"""kill -9 of match at each of its failpoints: every line that was shipped comes out of it, from one place."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from bench.latency_job import progress
from faults.chaos.rounds import AT_LEAST_TWO, seed_of
from faults.chaos.tally import counting
from integration.chain.installation import Installation, installation, midwatch
from integration.shippers.shipping import append
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Hits, codec
from midwatch.streams.services.reachable import kafka_options
from processes import wait_for

pytestmark = pytest.mark.integration

LINES = 2_000
SOON = 120.0


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        made.forgive("match is killed at its failpoints")
        yield made


class Events:
    """The steps that match has told of, each with the place of its line."""

    def __init__(self, watch: Installation) -> None:
        self._consumer: Any = KafkaConsumer(**kafka_options(watch.settings), enable_auto_commit=False)
        topic = watch.settings.topic_names.events
        places = [TopicPartition(topic, p) for p in self._consumer.partitions_for_topic(topic)]
        self._consumer.assign(places)
        self._consumer.seek_to_beginning(*places)
        self.told: Counter[tuple[int, str, int]] = Counter()

    def steps(self) -> set[int]:
        """All so far."""
        for messages in self._consumer.poll(timeout_ms=200).values():
            for message in messages:
                record = codec.decode(message.value)
                for told in record.progress if isinstance(record, Hits) else ():
                    self.told.update(
                        zip(told.steps, [told.generation] * len(told.steps), told.ends, strict=True)
                    )
        return {step for step, _, _ in self.told}

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.parametrize("point", ["judged", "sent", "acknowledged"])
def test_match_killed_at_any_step_loses_no_line(point: str, watch: Installation, tmp_path: Path) -> None:
    seed = seed_of(f"match/{point}")
    chance = random.Random(seed)
    log, written = tmp_path / "train.log", 0
    log.touch()
    watch.start("match")
    again = watch.begun["match"]
    about = ("--job=run", "--node=n0", "--start=beginning", "--set=ship.chunk_size=8KiB")
    watch.start("shipper", *midwatch("ship", *about), str(log), MIDWATCH_INCARNATION="local:1:1")
    events = Events(watch)
    try:
        with counting("agents", f"match killed at {point}", seed) as count:
            for _ in range(AT_LEAST_TWO):
                # Its file says that it is ready until the next one runs, which must not come beside `first`.
                wait_for(lambda: watch.processes["match"].poll() is None, "match is there again", SOON)
                watch.ready("match")
                first = watch.processes["match"]
                watch.start("match", MIDWATCH_FAILPOINT=f"{point}:{chance.randint(1, 8)}")
                watch.begun["match"] = again
                doomed = watch.processes["match"]
                first.kill()
                first.wait()
                for step in range(written + 1, written + LINES + 1, 100):
                    append(log, [progress(number) for number in range(step, step + 100)])
                written += LINES
                wait_for(lambda one=doomed: one.poll() is not None, f"match dies at {point}", SOON)  # type: ignore[misc]  # mypy sees no type in a default
                assert doomed.returncode == -signal.SIGKILL
                count.hit(f"failpoint {point}")
            wanted = set(range(1, written + 1))
            wait_for(lambda: wanted <= events.steps(), f"{written} steps", SOON)
            copies = sum(events.told.values()) - len(events.told)
            places = len(events.told)
            count.add(
                lines=written, lost=len(wanted - events.steps()), repeats=copies, twice=places - written
            )
            assert places == written, "a line that came again came from another place"
    finally:
        events.close()
