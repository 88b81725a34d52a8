"""The processes of docker-compose.yml, on the session's Kafka and Redis."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from embedded_stack import variables_of
from house.compose import Compose
from integration.telemetry.scraped import ports_of_all
from midwatch.agents.local.embedded.stack import Endpoints


@pytest.fixture(scope="module")
def compose(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    """`docker compose up`: every service runs, and all of them end with the module."""
    variables = variables_of(
        stack,
        TOPICS__PREFIX=f"compose-{secrets.token_hex(4)}",
        TELEMETRY__PROMETHEUS=f"127.0.0.1:{ports_of_all()}",
    )
    made = Compose(tmp_path_factory.mktemp("compose"), variables)
    try:
        made.up()
        yield made
    finally:
        made.down()
