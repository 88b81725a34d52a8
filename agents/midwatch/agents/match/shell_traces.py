"""What a shell's own trace (`set -x`) tells of the command behind a line. Pure."""

from __future__ import annotations

import re

_LOOK_BACK = 4096  # bytes
_TRACED = re.compile(rb"^(?:\d+: ?)?(\++) (?:\w+=\S* )*(\S+)", re.MULTILINE)
_LAUNCHERS = (b"srun", b"mpirun", b"mpiexec", b"docker", b"ssh", b"scontrol")


def was_asked_for_output(text: bytes, start: int) -> bool:
    """Whether the last command traced above ran inside another one, as `$(srun ..)` does.

    The shell takes what it prints and goes on, however it ended. Lines above `text` are unknown.
    """
    window = text[max(0, start - _LOOK_BACK) : start]
    if b"++ " not in window:
        return False
    traced = _TRACED.findall(window)
    if not traced:
        return False
    depth, command = traced[-1]
    return len(depth) > 1 and command in _LAUNCHERS
