"""The processes of docker-compose.yml, on the session's Kafka and Redis."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded_stack import variables_of
from house.compose import Compose
from midwatch.agents.local.embedded.stack import Endpoints


@pytest.fixture
def compose(stack: Endpoints, tmp_path: Path) -> Iterator[Compose]:
    """No service runs yet; all of them end with the test."""
    made = Compose(tmp_path, variables_of(stack, TOPICS__PREFIX=f"compose-{secrets.token_hex(4)}"))
    yield made
    made.down()
