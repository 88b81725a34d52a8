"""This machine's clock, for the shell only. The core takes the time as an argument."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since 1970 by this machine's clock. It may jump, and orders nothing between machines."""
    return time.time_ns() // 1_000_000
