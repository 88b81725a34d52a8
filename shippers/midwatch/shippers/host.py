"""A few numbers of the node for each heartbeat, where the system has them at no cost."""

from __future__ import annotations

import os
from pathlib import Path


def samples() -> dict[str, float]:
    """Load of one minute, and available memory in bytes; leaves out a number that it cannot read."""
    out: dict[str, float] = {}
    try:
        out["host_load"] = os.getloadavg()[0]
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                out["host_memory_available"] = float(line.split()[1]) * 1024
                break
    except OSError:
        pass
    return out
