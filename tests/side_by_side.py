"""Scenes of one file, played side by side: each mostly waits, and each is a test of its own.

    scenes = Scenes()
    played = scenes.fixture("watch")

    @scenes.scene
    def test_something(watch, tmp_path): ...

The first test begins all scenes that this run has collected, AT_ONCE at a time. Each test tells how its
own has ended.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

AT_ONCE = 3
"""More would wait for one another, for their jobs, shippers and looks at the topics need the cores."""

Played = dict[str, Future[None]]


class Scenes:
    """What one file plays at once. A scene's `tmp_path` is its own; all its other arguments are shared."""

    def __init__(self) -> None:
        self._scenes: dict[str, Callable[..., None]] = {}

    def scene(self, play: Callable[..., None]) -> Callable[[Played], None]:
        """The test that waits for this scene."""
        name = play.__name__
        self._scenes[name] = play

        def test(played: Played) -> None:
            played[name].result()

        test.__name__, test.__doc__, test.__module__ = name, play.__doc__, play.__module__
        return test

    def fixture(self, *shared: str, after: Callable[..., None] = lambda **_: None) -> Any:
        """The file's fixture `played`. `shared`: what the scenes ask for beside `tmp_path`.

        `after` is called with each scene's arguments when it has ended, however it did.
        """

        @pytest.fixture(scope="module")
        def played(
            request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
        ) -> Iterator[Played]:
            given = {name: request.getfixturevalue(name) for name in shared}

            def play(name: str) -> None:
                everything = given | {"tmp_path": tmp_path_factory.mktemp(name[:30])}
                asked = inspect.signature(self._scenes[name]).parameters
                try:
                    self._scenes[name](**{one: everything[one] for one in asked})
                finally:
                    after(**everything)

            mine = [item for item in request.session.items if item.path == request.path]
            names = [item.name for item in mine if item.name in self._scenes]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                yield {name: pool.submit(play, name) for name in names}

        return played
