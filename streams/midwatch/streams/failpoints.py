"""Named places at which a test may kill the process, as a power cut would: nothing is flushed or said.

`MIDWATCH_FAILPOINT=send` kills at the first pass of `failpoint("send")`, `send:3` at the third one. Without
the variable a failpoint is one comparison.
"""

from __future__ import annotations

import os
import signal

_name, _, _passes = os.environ.get("MIDWATCH_FAILPOINT", "").partition(":")
_left = int(_passes) if _passes.isdigit() else 1


def failpoint(name: str) -> None:
    """Dies here by SIGKILL if the environment says so."""
    global _left  # noqa: PLW0603 (a process dies once: it is the process's own count)
    if name == _name:
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
