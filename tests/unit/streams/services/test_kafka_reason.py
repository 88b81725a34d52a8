"""Why Kafka did not accept us, by what its client logged: a broker that hangs refuses nobody."""

from __future__ import annotations

import pytest

from midwatch.streams.services.reachable import _kafka_reason
from midwatch.streams.settings.schema import KafkaSettings, Settings

TOLD_ITS_VERSION = "<KafkaConnection node_id=bootstrap-0 broker_version=(4, 3) (initializing)>: "


@pytest.mark.parametrize(
    ("logged", "said"),
    [
        ("Request timed out after 58 ms. Closing connection.", "does not answer in time"),
        (
            "Abort ([Error 58] SaslAuthenticationFailedError: Invalid password)",
            "refuses the user",
        ),
        ("Connection lost: KafkaConnectionError: socket disconnected", "refuses the user"),
    ],
)
def test_who_hangs_is_told_from_who_refuses(logged: str, said: str) -> None:
    settings = Settings(kafka=KafkaSettings(username="ann"))
    assert said in _kafka_reason(settings, [TOLD_ITS_VERSION + logged])[0]
