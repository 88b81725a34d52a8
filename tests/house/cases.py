"""How many made-up cases a test plays: all of them, or in `make unit` a sixth.

`make unit` sets QUICK. It also leaves out the tests that need a service.
"""

from __future__ import annotations

import os

SERVICES = frozenset({"embedded", "base_install"})
"""Fixtures that start a service or ask one: a Kafka with a Redis, a package registry."""

_SHARE = 6


def cases(all_of_them: int) -> int:
    """`all_of_them`, or in a quick run a sixth, at least one."""
    return max(1, all_of_them // _SHARE) if quick() else all_of_them


def quick() -> bool:
    """Whether this is `make unit`."""
    return os.environ.get("QUICK", "") not in {"", "0"}
