"""Sends messages to Kafka. A thread of its own connects, for as long as it takes; sending never waits.

No message expires. A message that the broker does not take stays with the producer, and the caller bounds how
many bytes those are.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError
from kafka.record import util as kafka_checksums

from midwatch.shippers.messages import Report
from midwatch.shippers.sending.ledger import Future
from midwatch.streams.errors import ConfigurationError, ServiceUnreachable
from midwatch.streams.records.codec import Encoded
from midwatch.streams.services.kafka_client import LASTING, abandon, client_options
from midwatch.streams.settings.schema import KafkaSettings

_FOREVER_MS = 2**31 - 1
_LONGEST_BACKOFF = 5.0


def require_fast_checksums() -> None:
    """Checks that kafka-python has its C checksum: without it kafka-python costs too much CPU.

    Raises:
        ConfigurationError: the package `crc32c` is missing.
    """
    if kafka_checksums.crc32c_c is None:
        raise ConfigurationError(
            "the package crc32c is missing; without it every byte costs 22 times the CPU",
            where="kafka-python",
            remedy="pip install 'kafka-python[crc32c]'",
        )


class Publisher:
    """A producer that exists once Kafka answers, and again after `reset`."""

    def __init__(self, kafka: KafkaSettings, topic: str, report: Report) -> None:
        require_fast_checksums()
        if not kafka.bootstrap:
            raise ServiceUnreachable(
                "no Kafka is set",
                where="kafka.bootstrap",
                remedy="set it in midwatch.yaml or MIDWATCH_KAFKA__BOOTSTRAP, or start `midwatch up`",
            )
        # kafka-python repeats its errors while a broker is away. The publisher reports each once.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._kafka = kafka
        self._topic = topic
        self._report = report
        self._producer: Any = None
        self._closed = threading.Event()
        self._last_report = ""

    def connect(self, old: Any = None) -> None:
        """Begins to connect, in a thread of its own."""
        threading.Thread(target=self._connect, args=(old,), name="kafka-connect", daemon=True).start()

    @property
    def ready(self) -> bool:
        """Whether `send` may be called."""
        return self._producer is not None

    def send(self, key: bytes, message: Encoded) -> Future:
        """Hands a message to the producer, behind all earlier ones.

        Raises:
            KafkaError: the producer does not take this message, now or ever.
        """
        future: Future = self._producer.send(
            self._topic, value=message.value, key=key, headers=list(message.headers)
        )
        return future

    def reset(self) -> None:
        """Drops the producer with all that it holds, and connects again."""
        old, self._producer = self._producer, None
        self.connect(old)

    def close(self) -> None:
        """Ends at once and drops reason is not acknowledged."""
        self._closed.set()
        producer, self._producer = self._producer, None
        if producer is not None:
            abandon(producer)

    def _connect(self, old: Any) -> None:
        if old is not None:
            abandon(old)
        backoff = 0.2
        while not self._closed.wait(backoff if self._last_report or old is not None else 0):
            producer = None
            try:
                producer = KafkaProducer(**self._options())
                if not producer.partitions_for(self._topic):
                    raise KafkaTimeoutError
            except Exception as error:  # whatever the error is, the lines wait and the loop tries again
                self._report_once(self._reason(error, connected=producer is not None))
                if producer is not None:
                    abandon(producer)
                backoff = min(backoff * 2, _LONGEST_BACKOFF)
                continue
            if self._last_report:
                self._report_once("Kafka answers")
            self._producer, self._last_report = producer, ""
            return

    def _reason(self, error: Exception, *, connected: bool) -> str:
        brokers = ",".join(self._kafka.bootstrap)
        reason = str(error) or type(error).__name__
        if connected and isinstance(error, KafkaTimeoutError):
            reason = f"it has no topic {self._topic}: `midwatch doctor` says more"
        return f"Kafka at {brokers} cannot be used: {reason}; lines wait in their files"

    def _report_once(self, text: str) -> None:
        if text != self._last_report:
            self._last_report = text
            self._report(text)

    def _options(self) -> dict[str, Any]:
        return {
            **client_options(self._kafka),
            **LASTING,
            "client_id": "midwatch-ship",
            "acks": "all",
            "enable_idempotence": True,
            "compression_type": "lz4",
            "batch_size": 512 * 1024,
            "linger_ms": 0,
            "max_request_size": 1024 * 1024,
            "max_block_ms": 5000,
            "bootstrap_timeout_ms": 5000,
            "delivery_timeout_ms": _FOREVER_MS,
            "metadata_max_age_ms": 60_000,
            "allow_auto_create_topics": False,
            "metrics_enabled": False,
        }
