"""How long an executor may rest before it must look at its orders again."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

from midwatch.agents.executor.claimed_work import OpenCommands
from midwatch.agents.executor.claims import OpenClaims
from midwatch.agents.executor.consumer import Desk


def test_without_an_order_nothing_is_ever_due() -> None:
    none_open: Any = SimpleNamespace(look=lambda _now_ms: OpenClaims(()))
    open_commands = OpenCommands(cast(Desk, SimpleNamespace(claims=none_open)))
    assert open_commands.turn() == math.inf
