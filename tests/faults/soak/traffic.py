"""What is sent, and the ledger of it: the outside witness against whom the tables are judged."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from typing import Any

from kafka import KafkaProducer

from faults.soak.counting import chained

KEYS = 1500


class Traffic:
    """A steady stream of numbered records on random keys, from one idempotent producer, until ended."""

    def __init__(self, connection: Mapping[str, Any], topic: str, rate: float, seed: int) -> None:
        self.sent: dict[bytes, list[bytes]] = {}
        self.acknowledged = 0
        self.errors: list[BaseException] = []
        self._topic = topic
        self._rate = rate
        self._random = random.Random(seed)
        # An outage of the broker must not lose what the ledger has: try for long.
        self._producer = KafkaProducer(**connection, linger_ms=5, delivery_timeout_ms=300_000)
        self._end = threading.Event()
        self._number = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._end.wait(0.01):
            while self._number < (time.monotonic() - began) * self._rate:
                self._send()

    def _send(self) -> None:
        key, value = b"k%d" % self._random.randrange(KEYS), b"v%d" % self._number
        self._number += 1
        self.sent.setdefault(key, []).append(value)
        self._producer.send(self._topic, value, key=key).add_callback(self._ok).add_errback(
            self.errors.append
        )

    def _ok(self, _: object) -> None:
        self.acknowledged += 1

    def end(self, at_least: int = 0) -> int:
        """Send up to that many, then wait for every acknowledgement; how many were sent."""
        while self._number < at_least and self._thread.is_alive():
            self._thread.join(0.1)
        self._end.set()
        self._thread.join()
        self._producer.flush()
        self._producer.close()
        return self._number

    def close(self) -> None:
        """After a test that failed: what is not sent yet does not matter any more."""
        self._end.set()
        self._producer.close(timeout=1)

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
