"""What a shipper says to people: one line each, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable

Report = Callable[[str], None]


def reporter() -> Report:
    """Never fails, even where standard error is gone: nothing that is said here is worth a training."""

    def report(text: str) -> None:
        try:
            sys.stderr.write(f"midwatch ship: {text}\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            return

    return report
