"""One Ray head for the folder, and the session's Kafka and Redis."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

import pytest

from integration.ray.played import Played, begun
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


@pytest.fixture(scope="module", autouse=True)
def beside_the_other_tests(request: pytest.FixtureRequest) -> None:
    """The trainings of the whole chain begin with the first test, if one of them is to be judged."""
    judged = any("trainings_begun" in getattr(item, "fixturenames", ()) for item in request.session.items)
    if judged and not obtain():
        request.getfixturevalue("trainings_begun")
