"""How kafka-python's clients connect and read. Light: the sidecar imports it too."""

from __future__ import annotations

import contextlib
from typing import Any

from midwatch.streams.settings.schema import KafkaSettings

LASTING = {"reconnect_backoff_max_ms": 1000}
"""For clients that live through outages: kafka-python's own 30 s would be added to each."""
PATIENT = {"fetch_max_wait_ms": 5_000}
"""For readers that wait for what comes: they hear of it at once, and ask seldom while nothing does."""
BOUNDED = {"request_timeout_ms": 10_000, "bootstrap_timeout_ms": 10_000}
"""For clients that somebody waits for: they give up on a silent broker within 10 s."""
_ABANDON_S = 2.0


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Addresses, user and TLS; the password is in it in the clear, so never log it."""
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
    """A reader without a group, from the beginning, that commits nothing by itself; `options` may differ.

    The caller assigns its partitions and closes it. Raises kafka-python's errors where no broker answers.
    """
    from kafka import KafkaConsumer  # it is loaded where a reader is

    plain = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    return KafkaConsumer(**client_options(kafka), **(plain | options))


def abandon(producer: Any) -> None:
    """Ends a producer with all that it holds; never raises, never waits for the broker.

    With anything unsent, `close` of kafka-python 3.0.12 raises before it has closed a thing. Its thread would
    go on, and send once the broker is back what another producer has been given meanwhile: so that thread is
    told to fail what is left.
    """
    from kafka.errors import KafkaError  # it is loaded where a producer is

    try:
        producer.close(timeout=0)
    except KafkaError:
        sender = producer._sender
        sender.force_close()
        sender.join(_ABANDON_S)
        with contextlib.suppress(KafkaError):
            producer.close(timeout=0)
