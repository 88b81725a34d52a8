"""How a process of ours says that it is at work: a small JSON file with its pid below the state directory.

A file and not a line of output, because output goes to a log that rotates; with the pid, because a file
that a killed process left behind must not speak for its successor. The Faust workers write theirs after
every rebalance, with the partitions that they read; the executor writes it once.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from midwatch.streams.host.atomic_file import replace_file


def run_directory(state_directory: Path) -> Path:
    """Where running processes keep their signs of life; made, for the owner alone, if it is absent."""
    directory = state_directory / "run"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory


def ready_file(state_directory: Path, name: str) -> Path:
    """Where the process called `name` (`match`, `detect`, `decide`, `executor`) tells that it is ready."""
    return run_directory(state_directory) / f"{name}.ready"


def declare_ready(state_directory: Path, name: str) -> None:
    """Call it once work can be done."""
    file = ready_file(state_directory, name)
    replace_file(file, json.dumps({"pid": os.getpid()}).encode())


def is_ready(state_directory: Path, name: str, pid: int) -> bool:
    """Whether the process `pid` has said that it is ready."""
    try:
        told = json.loads(ready_file(state_directory, name).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(told, dict) and told.get("pid") == pid
