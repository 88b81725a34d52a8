"""Options and readers of kafka-python's clients. It loads kafka-python late, for the shipper."""

from __future__ import annotations

import contextlib
from typing import Any

from midwatch.streams.settings.schema import KafkaSettings

LASTING = {"reconnect_backoff_max_ms": 1000}
"""For clients that survive outages. The 30 s of kafka-python's default would lengthen each outage."""
PATIENT = {"fetch_max_wait_ms": 5_000}
"""For readers that wait for new records. They get a record at once, and ask seldom while none comes."""
BOUNDED = {"request_timeout_ms": 10_000, "bootstrap_timeout_ms": 10_000}
"""For clients that somebody waits for. They give up on a silent broker within 10 s."""
_ABANDON_S = 2.0


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Options of kafka-python's clients. Never log them: they hold the password in the clear."""
    options: dict[str, Any] = {
        "bootstrap_servers": list(kafka.bootstrap),
        "security_protocol": kafka.security_protocol,
    }
    if kafka.username:
        options |= {
            "sasl_mechanism": kafka.mechanism,
            "sasl_plain_username": kafka.username,
            "sasl_plain_password": kafka.password.reveal(),
        }
    if kafka.tls:
        files = {
            "ssl_cafile": kafka.ca_file,
            "ssl_certfile": kafka.certificate_file,
            "ssl_keyfile": kafka.key_file,
        }
        options |= {name: str(path) for name, path in files.items() if path}
    return options


def plain_consumer(kafka: KafkaSettings, **options: Any) -> Any:
    """A reader without a group that starts at the beginning and commits nothing. `options` override this.

    The caller assigns the partitions and closes the reader. Raises kafka-python's errors without a broker.
    """
    from kafka import KafkaConsumer  # loaded only where a reader is

    plain = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    return KafkaConsumer(**client_options(kafka), **(plain | options))


def abandon(producer: Any) -> None:
    """Closes a producer and drops its unsent records. Never raises, never waits for the broker.

    With unsent records, `close` of kafka-python 3.0.12 raises before it closes anything. The sender thread
    would go on. Once the broker is back, it would send records that another producer has meanwhile. So this
    function makes that thread fail the rest.
    """
    from kafka.errors import KafkaError  # loaded only where a producer is

    try:
        producer.close(timeout=0)
    except KafkaError:
        sender = producer._sender
        sender.force_close()
        sender.join(_ABANDON_S)
        with contextlib.suppress(KafkaError):
            producer.close(timeout=0)
