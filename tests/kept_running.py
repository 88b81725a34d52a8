"""What takes long to start is started once for all files of a turn (see house/turns.py), and ends with it.

A session's fixture would be one for each folder whose conftest imports it, and would live until the very end:
an idle Ray head or SLURM takes time from all other tests.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TypeVar, cast

import pytest

Kept = TypeVar("Kept")
_running = pytest.StashKey[dict[str, tuple[ExitStack, object]]]()


def kept(request: pytest.FixtureRequest, start: Callable[[], AbstractContextManager[Kept]]) -> Kept:
    """What runs already under the name of this fixture, or is started now.

    The fixture may last a module and no longer: in the next turn the same name stands for another start.
    """
    config, name = request.config, str(request.fixturename)
    running = config.stash.setdefault(_running, {})
    if name not in running:
        if not running:
            config.add_cleanup(lambda: end_all(config))
        until = ExitStack()
        running[name] = until, until.enter_context(start())
    return cast(Kept, running[name][1])


def end_all(config: pytest.Config) -> None:
    """Ends what runs: for the end of a turn of files."""
    running = config.stash.get(_running, {})
    while running:
        _, (until, _) = running.popitem()
        until.close()
