"""A plain reader keeps to itself: no group, no commit, everything from the beginning."""

from __future__ import annotations

from typing import Any

import kafka
import pytest

from midwatch.streams.services.kafka_client import BOUNDED, LASTING, PATIENT, plain_consumer
from midwatch.streams.settings.schema import KafkaSettings
from midwatch.streams.settings.secret import Secret

KAFKA = KafkaSettings(bootstrap=("k:1",), username="u", password=Secret("p"))


@pytest.fixture(autouse=True)
def given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a reader, what it is made with."""
    monkeypatch.setattr(kafka, "KafkaConsumer", lambda **options: options)


def made(**options: Any) -> dict[str, Any]:
    return dict(plain_consumer(KAFKA, **options))


def test_a_reader_joins_no_group_and_commits_nothing() -> None:
    options = made(**LASTING, **PATIENT, **BOUNDED)
    assert (options["group_id"], options["enable_auto_commit"]) == (None, False)
    assert options["auto_offset_reset"] == "earliest"
    assert (options["bootstrap_servers"], options["sasl_plain_password"]) == (["k:1"], "p")


def test_what_the_caller_says_outweighs_what_is_plain() -> None:
    options = made(group_id="midwatch.executor", auto_offset_reset="latest")
    assert (options["group_id"], options["auto_offset_reset"]) == ("midwatch.executor", "latest")
    assert options["enable_auto_commit"] is False
