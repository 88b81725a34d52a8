"""Shell traces (`set -x`): which command printed a line. Pure."""

from __future__ import annotations

import re

from midwatch.streams.lines.launcher_prefix import FRONT

_LOOK_BACK = 4096  # bytes
_TRACED = re.compile(rb"^" + FRONT.encode() + rb"(?:\d+:)?(\++) (?:\w+=\S* )*(\S+)", re.MULTILINE)
_LAUNCHERS = (b"srun", b"mpirun", b"mpiexec", b"docker", b"ssh", b"scontrol")


def is_captured(text: bytes, start: int) -> bool:
    """Whether the last traced command above is a launcher inside another command, as in `$(srun ..)`.

    The shell takes its output and goes on, even if the command failed. Lines above `text` are unknown.
    """
    window = text[max(0, start - _LOOK_BACK) : start]
    if b"++ " not in window:
        return False
    traced = _TRACED.findall(window)
    if not traced:
        return False
    depth, command = traced[-1]
    return len(depth) > 1 and command in _LAUNCHERS
