"""One Ray head for the folder, and the session's Kafka and Redis."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from house.parts import require
from integration.ray.played import Played, begun, demo_begun
from kept_running import kept
from midwatch.agents.local.embedded.stack import Endpoints
from ray_lab.fixture import ray_head, ray_session
from ray_lab.lab import RayLab
from ray_lab.packages import obtain
from ray_lab.world import ray_world

__all__ = ["ray_head", "ray_session", "ray_world"]


@pytest.fixture(scope="module")
def trainings_begun(
    request: pytest.FixtureRequest,
    stack: Endpoints,
    ray_session: RayLab,
    tmp_path_factory: pytest.TempPathFactory,
) -> Future[Played]:
    directory = tmp_path_factory.mktemp("whole-chain")
    return kept(request, partial(begun, directory, stack, ray_session))


@pytest.fixture(scope="module")
def the_demo(
    request: pytest.FixtureRequest, stack: Endpoints, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Future[CompletedProcess[str]]]:
    """The demo's directory, and how it ended."""
    reason = obtain()
    require("a real Ray", not reason, reason)
    return kept(request, partial(demo_begun, tmp_path_factory.mktemp("demo"), stack))


@pytest.fixture(scope="module", autouse=True)
def beside_the_other_tests(request: pytest.FixtureRequest) -> None:
    """What mostly waits begins with the first test, if it is to be judged in this run."""
    asked = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    for name in ("trainings_begun", "the_demo"):
        if name in asked and not obtain():
            request.getfixturevalue(name)
