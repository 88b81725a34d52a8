"""How kafka-python's clients connect. Light: the sidecar imports it too."""

from __future__ import annotations

from typing import Any

from midwatch.streams.settings import KafkaSettings


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
