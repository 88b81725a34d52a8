"""How a process of ours says that it is at work: a file with its pid below the state directory.

A file and not a line of output, because output goes to a log that rotates; with the pid, because a file
that a killed process left behind must not speak for its successor.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def ready_file(state_directory: Path, name: str) -> Path:
    """Where the process called `name` (`match`, `detect`, `decide`, `executor`) tells that it is ready."""
    return state_directory / "run" / f"{name}.ready"


def declare_ready(state_directory: Path, name: str) -> None:
    """Call it once when work can be done: partitions assigned, topics checked. Later calls change nothing."""
    file = ready_file(state_directory, name)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        draft.write_text(f"{os.getpid()}\n", encoding="ascii")
        draft.replace(file)


def is_ready(state_directory: Path, name: str, pid: int) -> bool:
    """Whether the process `pid` has said that it is ready."""
    try:
        return ready_file(state_directory, name).read_text(encoding="ascii").strip() == str(pid)
    except OSError:
        return False
