"""Services that cannot be reached, or are not as they must be: what is said, and what to do about it."""

from __future__ import annotations

import os
import secrets
import signal
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from redis import Redis

from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints
from midwatch.streams.errors import ConfigurationError, MidwatchError, ServiceUnreachable
from midwatch.streams.services.reachable import check_kafka, check_redis
from midwatch.streams.services.topic_admin import TopicMismatch, TopicMissing, check_topics, make_topics
from processes import wait_for

from .conftest import settings_of

CANARY = "wrong-canary-password"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"KAFKA__BOOTSTRAP": "127.0.0.1:1"}, "127.0.0.1:1: Connection refused"),
        ({"KAFKA__BOOTSTRAP": "broker.example.invalid:9092"}, "the name broker.example.invalid is not known"),
        ({"KAFKA__PASSWORD": CANARY}, "Kafka refuses the user 'midwatch' with this password"),
        ({"KAFKA__USERNAME": "", "KAFKA__PASSWORD": ""}, "it asks for a user and a password"),
        ({"KAFKA__TLS": "true"}, "Kafka does not speak TLS there"),
        ({"KAFKA__BOOTSTRAP": ""}, "the settings name no Kafka"),
    ],
)
def test_why_kafka_cannot_be_used(
    stack: Endpoints, tmp_path: Path, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(ServiceUnreachable) as caught:
        check_kafka(settings_of(stack, tmp_path, **variables), patience=2.0)
    assert_helpful(caught.value, said)


def test_something_else_listens_on_the_port_of_kafka(stack: Endpoints, tmp_path: Path) -> None:
    redis = stack.redis_url.rpartition("@")[2].removesuffix("/0")
    with pytest.raises(ServiceUnreachable) as caught:
        check_kafka(settings_of(stack, tmp_path, KAFKA__BOOTSTRAP=redis), patience=2.0)
    assert_helpful(caught.value, "it does not answer as Kafka does")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"REDIS__URL": "redis://127.0.0.1:1"}, "Connection refused"),
        ({"REDIS__PASSWORD": CANARY}, "Redis refuses this password"),
        ({"REDIS__PASSWORD": ""}, "Redis asks for a password"),
        ({"REDIS__URL": ""}, "the settings name no Redis"),
    ],
)
def test_why_redis_cannot_be_used(
    stack: Endpoints, tmp_path: Path, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(ServiceUnreachable) as caught:
        check_redis(settings_of(stack, tmp_path, **variables))
    assert_helpful(caught.value, said)


def assert_helpful(error: MidwatchError, said: str) -> None:
    assert said in error.what
    assert error.where
    assert error.remedy
    assert error.exit_code == 4
    assert CANARY not in str(error)


@pytest.mark.parametrize(
    ("name", "value", "for_acting_only"),
    [
        ("maxmemory-policy", "allkeys-lru", False),
        ("appendfsync", "everysec", True),
        ("appendonly", "no", True),
    ],
)
def test_a_redis_that_could_lose_state_is_refused(
    stack: Endpoints, tmp_path: Path, name: str, value: str, for_acting_only: bool
) -> None:
    settings = settings_of(stack, tmp_path)
    check_redis(settings, safe_to_act=True)
    with Redis.from_url(stack.redis_url) as client:
        before = client.config_get(name)[name]
        client.config_set(name, value)
        try:
            with pytest.raises(ConfigurationError, match=f"may lose data: {name} is {value}"):
                check_redis(settings, safe_to_act=True)
            if for_acting_only:
                check_redis(settings)
        finally:
            client.config_set(name, before)


def test_topics_are_made_once_and_checked(stack: Endpoints, tmp_path: Path) -> None:
    prefix = f"made-{secrets.token_hex(4)}"
    settings = settings_of(stack, tmp_path, TOPICS__PREFIX=prefix, TOPICS__PARTITIONS__EVENTS="3")
    with pytest.raises(TopicMissing, match=rf"{prefix}\.events") as missing:
        check_topics(settings)
    assert missing.value.exit_code == 4
    made = make_topics(settings)
    assert set(made) == {spec.name for spec in settings.topic_specifications()}
    assert make_topics(settings) == ()
    check_topics(settings)


def test_a_topic_with_other_partitions_is_not_taken(stack: Endpoints, tmp_path: Path) -> None:
    prefix = f"other-{secrets.token_hex(4)}"
    make_topics(settings_of(stack, tmp_path, TOPICS__PREFIX=prefix, TOPICS__PARTITIONS__EVENTS="3"))
    with pytest.raises(TopicMismatch, match=r"has 3 partitions, and the settings say 8") as caught:
        check_topics(settings_of(stack, tmp_path, TOPICS__PREFIX=prefix))
    assert caught.value.remedy.startswith("set topics.partitions.events: 3")


@pytest.mark.parametrize(
    ("topic", "config", "said"),
    [
        ("events", {"message.timestamp.type": "CreateTime"}, "`now` is the broker's append time"),
        ("incidents", {"cleanup.policy": "compact"}, "state is a fold of every record"),
        ("specs", {"cleanup.policy": "delete"}, "it must be compact"),
    ],
)
def test_a_topic_that_would_make_state_wrong_is_not_taken(
    *,
    stack: Endpoints,
    admin: KafkaAdminClient,
    tmp_path: Path,
    topic: str,
    config: dict[str, str],
    said: str,
) -> None:
    prefix = f"wrong-{secrets.token_hex(4)}"
    settings = settings_of(stack, tmp_path, TOPICS__PREFIX=prefix)
    partitions = {spec.name: spec.partitions for spec in settings.topic_specifications()}[f"{prefix}.{topic}"]
    admin.create_topics(
        {f"{prefix}.{topic}": {"num_partitions": partitions, "replication_factor": 1, "configs": config}}
    )
    with pytest.raises(TopicMismatch) as caught:
        make_topics(settings)
    assert said in caught.value.what
    assert "--add-config" in caught.value.remedy


def test_topics_that_cannot_be_made_are_told_with_the_broker_s_reason(
    stack: Endpoints, tmp_path: Path
) -> None:
    settings = settings_of(
        stack, tmp_path, TOPICS__PREFIX=f"rep-{secrets.token_hex(4)}", TOPICS__REPLICATION="3"
    )
    with pytest.raises(ServiceUnreachable, match="replication factor of 3 cannot be reached") as caught:
        make_topics(settings)
    assert len(caught.value.what) < 600


def _stands_still(pid: int) -> bool:
    """Whether each of its threads is stopped: one that is not yet may still answer a handshake."""
    stats = [task / "stat" for task in Path(f"/proc/{pid}/task").iterdir()]
    return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in stats)


def test_a_broker_that_stands_still_is_not_waited_for(
    stack: Endpoints, servers: EmbeddedStack, tmp_path: Path
) -> None:
    os.kill(servers.kafka.pid, signal.SIGSTOP)
    try:
        wait_for(lambda: _stands_still(servers.kafka.pid), "the broker stands still")
        with pytest.raises(ServiceUnreachable, match="does not answer"):
            check_kafka(settings_of(stack, tmp_path), patience=1.0)
    finally:
        os.kill(servers.kafka.pid, signal.SIGCONT)
