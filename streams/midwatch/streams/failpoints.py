"""Named places where a test can kill the process as a power cut would: nothing is flushed or logged.

`MIDWATCH_FAILPOINT=send` kills at the first pass of `failpoint("send")`, `send:3` at the third pass.
Without the variable a failpoint costs one comparison.
"""

from __future__ import annotations

import os
import signal

_name, _, _passes = os.environ.get("MIDWATCH_FAILPOINT", "").partition(":")
_left = int(_passes) if _passes.isdigit() else 1


def failpoint(name: str) -> None:
    """Kills this process with SIGKILL if `MIDWATCH_FAILPOINT` names this place and pass."""
    global _left  # noqa: PLW0603 (the count belongs to the process)
    if name == _name:
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
