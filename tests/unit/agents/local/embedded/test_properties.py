"""The settings of the two servers that others rely on."""

from __future__ import annotations

from midwatch.agents.local.embedded.kafka.broker import java_flags
from midwatch.agents.local.embedded.properties import kafka_properties, redis_configuration


def settings(text: str, separator: str) -> dict[str, str]:
    rows = [row for row in text.splitlines() if row and not row.startswith("#")]
    assert len({row.partition(separator)[0] for row in rows}) == len(rows), "a key stands twice"
    return {row.partition(separator)[0]: row.partition(separator)[2] for row in rows}


def kafka() -> dict[str, str]:
    return settings(kafka_properties(port=20001, controller_port=20002, password="s3cret"), "=")


def test_kafka_listens_on_loopback_only_and_asks_for_the_password_on_both_listeners() -> None:
    found = kafka()
    assert found["listeners"] == "CLIENT://127.0.0.1:20001,CONTROLLER://127.0.0.1:20002"
    assert found["listener.security.protocol.map"] == "CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    for listener in ("client", "controller"):
        assert 'user_midwatch="s3cret"' in found[f"listener.name.{listener}.plain.sasl.jaas.config"]


def test_kafka_makes_no_topic_by_itself_and_lets_short_sessions_be() -> None:
    found = kafka()
    assert found["auto.create.topics.enable"] == "false"
    assert found["group.min.session.timeout.ms"] == "1000"
    assert found["group.initial.rebalance.delay.ms"] == "0"
    assert found["message.max.bytes"] == "2097152"


def test_kafkas_paths_are_relative_so_that_any_state_directory_will_do() -> None:
    assert kafka()["log.dirs"] == "data"


def test_redis_loses_no_answered_write_and_forgets_nothing() -> None:
    found = settings(redis_configuration(port=20003, password="s3cret", memory_megabytes=64), " ")
    assert found["bind"] == "127.0.0.1"
    assert found["requirepass"] == "s3cret"
    assert (found["appendonly"], found["appendfsync"], found["save"]) == ("yes", "always", '""')
    assert found["maxmemory-policy"] == "noeviction"


def test_java_gets_only_the_flags_that_its_version_knows() -> None:
    assert not any("native-access" in flag or "unsafe" in flag for flag in java_flags(21))
    assert "--enable-native-access=ALL-UNNAMED" in java_flags(22)
    assert "--sun-misc-unsafe-memory-access=allow" in java_flags(25)
