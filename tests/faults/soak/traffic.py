"""What is sent, and the ledger of it: the outside witness against whom the tables are judged."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaProducer

from faults.soak.counting import chained

KEYS = 1500


class Traffic:
    """A steady stream of numbered records on random keys, from one idempotent producer, until ended."""

    def __init__(self, connection: Mapping[str, Any], topic: str, rate: float, seed: int) -> None:
        self.sent: dict[bytes, list[bytes]] = {}
        self.acknowledged = 0
        self.errors: list[BaseException] = []
        self._connection = connection
        self._topic = topic
        self._rate = rate
        self._random = random.Random(seed)
        self._end = threading.Event()
        self._number = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            asyncio.run(self._produce())
        except Exception as error:
            self.errors.append(error)
            raise

    async def _produce(self) -> None:
        # Not kafka-python's: in 3.0.12 it does not come back from an outage of a minute, and never says so.
        # An outage of the broker must not lose what the ledger has: try for long.
        producer = AIOKafkaProducer(
            **self._connection, enable_idempotence=True, linger_ms=5, request_timeout_ms=300_000
        )
        await producer.start()
        began = time.monotonic()
        while not self._end.is_set():
            await asyncio.sleep(0.01)
            while self._number < (time.monotonic() - began) * self._rate:
                await self._send(producer)
        await producer.stop()  # waits for every acknowledgement

    async def _send(self, producer: AIOKafkaProducer) -> None:
        key, value = b"k%d" % self._random.randrange(KEYS), b"v%d" % self._number
        self._number += 1
        self.sent.setdefault(key, []).append(value)
        sending = await producer.send(self._topic, value, key=key)
        sending.add_done_callback(self._done)

    def _done(self, sending: asyncio.Future[Any]) -> None:
        error = sending.exception()
        if error is None:
            self.acknowledged += 1
        else:
            self.errors.append(error)

    def end(self, at_least: int = 0) -> int:
        """Send up to that many, then wait for every acknowledgement; how many were sent."""
        while self._number < at_least and self._thread.is_alive():
            self._thread.join(0.1)
        self._end.set()
        self._thread.join()
        return self._number

    def close(self) -> None:
        """After a test that failed: what is not sent yet does not matter any more."""
        self._end.set()

    def expected(self) -> tuple[dict[bytes, tuple[int, int]], dict[bytes, tuple[int, int]]]:
        """Count and checksum of each key that the first and the second stage must have come to."""
        first: dict[bytes, tuple[int, int]] = {}
        second: dict[bytes, tuple[int, int]] = {}
        for key, values in self.sent.items():
            one = two = 0
            for count, value in enumerate(values, 1):
                one = chained(one, value)
                two = chained(two, b"%d %s" % (count, value))
            first[key], second[key] = (len(values), one), (len(values), two)
        return first, second
