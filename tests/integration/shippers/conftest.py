"""A topic and a shipper for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.shippers.shipping import Shipper, Topic
from midwatch.agents.local.embedded.stack import Endpoints

MakeShipper = Callable[..., Shipper]


@pytest.fixture
def topic(stack: Endpoints) -> Iterator[Topic]:
    """A topic of lines of its own."""
    made = Topic(stack)
    yield made
    made.close()


@pytest.fixture
def shipper(topic: Topic, tmp_path: Path) -> Iterator[MakeShipper]:
    """`shipper(path, ...)` makes one that is gone after the test."""
    made: list[Shipper] = []

    def make(*arguments: str | Path) -> Shipper:
        made.append(Shipper(topic, tmp_path / f"state{len(made)}", *arguments))
        return made[-1]

    yield make
    for one in made:
        one.kill()
