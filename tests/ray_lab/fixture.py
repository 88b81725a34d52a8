"""Fixtures for a conftest to import: `ray_head`, one for all files, whose jobs end before each test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from house.parts import require
from kept_running import kept
from ray_lab.lab import RayLab
from ray_lab.packages import obtain


@contextmanager
def ray_running(*, redis: bool = False, token: str = "", whole: bool = False) -> Iterator[RayLab]:
    """A head that is up; a visible skip where there can be none, in CI a failure."""
    reason = obtain()
    require("a real Ray", not reason, reason)
    # A short name: a socket's path may have 107 bytes.
    lab = RayLab(Path(tempfile.mkdtemp(prefix="rl-")), redis=redis, token=token, whole=whole)
    try:
        lab.boot()
        yield lab
    finally:
        lab.close()


@pytest.fixture(scope="module")
def ray_session(request: pytest.FixtureRequest) -> RayLab:
    return kept(request, partial(ray_running, token="lab-token-of-the-tests", whole=True))


@pytest.fixture
def ray_head(ray_session: RayLab) -> RayLab:
    ray_session.clear()
    return ray_session
