"""The way to Kafka. Connecting happens beside the caller, for as long as it takes; sending never waits.

Nothing expires here: what the broker does not take stays with the producer, bounded by the caller's budget.
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
    """Without its C checksum kafka-python costs more CPU than many a data loader.

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
    """A producer that comes into being once Kafka answers, and again after `reset`."""

    def __init__(self, kafka: KafkaSettings, topic: str, report: Report) -> None:
        require_fast_checksums()
        if not kafka.bootstrap:
            raise ServiceUnreachable(
                "no Kafka is given",
                where="kafka.bootstrap",
                remedy="set it in midwatch.yaml or MIDWATCH_KAFKA__BOOTSTRAP, or start `midwatch up`",
            )
        # It repeats itself for as long as a broker is away; what matters of that is reported here, once.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._kafka = kafka
        self._topic = topic
        self._report = report
        self._producer: Any = None
        self._closed = threading.Event()
        self._said = ""

    def connect(self, old: Any = None) -> None:
        """Begins to connect, beside the caller."""
        threading.Thread(target=self._connect, args=(old,), name="kafka-connect", daemon=True).start()

    @property
    def ready(self) -> bool:
        """Whether `send` may be called."""
        return self._producer is not None

    def send(self, key: bytes, message: Encoded) -> Future:
        """Hands a message to the producer, behind those before it.

        Raises:
            KafkaError: it cannot be sent as it is, now or ever.
        """
        future: Future = self._producer.send(
            self._topic, value=message.value, key=key, headers=list(message.headers)
        )
        return future

    def reset(self) -> None:
        """Gives up the producer and all that it holds, and connects anew."""
        old, self._producer = self._producer, None
        self.connect(old)

    def close(self) -> None:
        """Ends at once; what was not acknowledged is given up."""
        self._closed.set()
        producer, self._producer = self._producer, None
        if producer is not None:
            abandon(producer)

    def _connect(self, old: Any) -> None:
        if old is not None:
            abandon(old)
        backoff = 0.2
        while not self._closed.wait(backoff if self._said or old is not None else 0):
            producer = None
            try:
                producer = KafkaProducer(**self._options())
                if not producer.partitions_for(self._topic):
                    raise KafkaTimeoutError
            except Exception as error:  # whatever it is, the lines wait and we try again
                self._say(self._reason(error, connected=producer is not None))
                if producer is not None:
                    abandon(producer)
                backoff = min(backoff * 2, _LONGEST_BACKOFF)
                continue
            if self._said:
                self._say("Kafka answers")
            self._producer, self._said = producer, ""
            return

    def _reason(self, error: Exception, *, connected: bool) -> str:
        where = ",".join(self._kafka.bootstrap)
        what = str(error) or type(error).__name__
        if connected and isinstance(error, KafkaTimeoutError):
            what = f"it has no topic {self._topic}: `midwatch doctor` says more"
        return f"Kafka at {where} cannot be used: {what}; lines wait in their files"

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
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
