"""Fixtures with real parts: one Kafka and one Redis for the whole session, started when first asked for.

A folder's conftest imports the ones that it wants, as `tests/integration/conftest.py` does.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints

MakeTopic = Callable[..., str]


_running = pytest.StashKey[tuple[EmbeddedStack, Endpoints]]()


@pytest.fixture(scope="session")
def embedded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[EmbeddedStack, Endpoints]:
    """The running stack, the same for every folder whose conftest imports this."""
    kept = request.config.stash
    if _running not in kept:
        stack = EmbeddedStack(tmp_path_factory.mktemp("stack"))
        kept[_running] = (stack, stack.start())
        request.config.add_cleanup(stack.stop)
    return kept[_running]


@pytest.fixture(scope="session")
def stack(embedded: tuple[EmbeddedStack, Endpoints]) -> Endpoints:
    """Where the session's Kafka and Redis answer; started with the first test that asks."""
    return embedded[1]


def variables_of(stack: Endpoints, **others: str) -> dict[str, str]:
    """MIDWATCH_* variables that name the session's services; `others` without their prefix."""
    return {
        "MIDWATCH_KAFKA__BOOTSTRAP": stack.kafka,
        "MIDWATCH_KAFKA__USERNAME": stack.kafka_username,
        "MIDWATCH_KAFKA__PASSWORD": stack.kafka_password,
        "MIDWATCH_REDIS__URL": f"redis://{stack.redis_url.rpartition('@')[2]}",
        "MIDWATCH_REDIS__PASSWORD": stack.kafka_password,
    } | {f"MIDWATCH_{name}": value for name, value in others.items()}


@pytest.fixture(scope="session")
def servers(embedded: tuple[EmbeddedStack, Endpoints]) -> EmbeddedStack:
    """The handles: `servers.kafka.kill()`, `servers.redis.restart()`. Whoever stops one starts it again."""
    return embedded[0]


@pytest.fixture(scope="session")
def admin(stack: Endpoints) -> Iterator[KafkaAdminClient]:
    """kafka-python's admin client on the session's Kafka."""
    client = KafkaAdminClient(
        bootstrap_servers=stack.kafka,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=stack.kafka_username,
        sasl_plain_password=stack.kafka_password,
    )
    yield client
    client.close()


@pytest.fixture
def topics(admin: KafkaAdminClient) -> MakeTopic:
    """`topics("logs", partitions=3, config={...})` makes a topic of a new name and returns that."""

    def make(purpose: str = "topic", partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = f"{purpose}-{secrets.token_hex(4)}"
        admin.create_topics(
            [NewTopic(name, num_partitions=partitions, replication_factor=1, topic_configs=config or {})]
        )
        return name

    return make
