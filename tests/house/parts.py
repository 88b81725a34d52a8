"""What to do when a part that a test needs is not there: skip for a person, fail in CI."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

Require = Callable[[str, bool, str], None]


def require(part: str, present: bool, how_to_get: str) -> None:
    """Return when `present`; else skip the test and say what it needs.

    Where the variable CI is set, a missing part fails the test instead: a gate that skips proves nothing.
    """
    if present:
        return
    message = f"needs {part}: {how_to_get}"
    if in_ci():
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def in_ci() -> bool:
    """Whether this run is a gate: CI is set to anything but nothing, 0 or false."""
    return os.environ.get("CI", "").lower() not in {"", "0", "false", "no"}
