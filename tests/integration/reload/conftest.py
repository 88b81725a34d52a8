"""A whole watch with two match workers, the second one as if on another machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from integration.chain.installation import Installation, installation, midwatch
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.services.connection import write_connection
from midwatch.streams.worker.readiness import is_ready
from processes import wait_for


@pytest.fixture(scope="module")
def watch(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        own_rules(made).mkdir()
        made.start("match", MIDWATCH_RULES__DIRECTORIES=str(own_rules(made)))
        for name in ("detect", "decide"):
            made.start(name)
        made.ready()
        second_match(made, "second")
        yield made


def own_rules(made: Installation) -> Path:
    """The directory of the first worker's own rules."""
    return made.directory / "rules"


def second_match(made: Installation, name: str) -> None:
    """One more worker of match with a state directory of its own."""
    state = made.directory / name
    state.mkdir(mode=0o700)
    write_connection(replace(made.settings, state_directory=state))
    made.start(name, *midwatch("worker", "match"), MIDWATCH_STATE_DIRECTORY=str(state))
    wait_for(lambda: is_ready(state, "match", made.processes[name].pid), f"{name} is ready", 120)
