"""Ready files: a process at work keeps a small JSON file with its pid below the state directory.

A line of output would not do, because output goes to a log that rotates. The file holds the pid, so that a
file left by a killed process does not speak for its successor. A Faust worker writes its file after every
rebalance, with the partitions that it reads. The executor writes its file once.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from midwatch.streams.host.atomic_file import replace_file


def run_directory(state_directory: Path) -> Path:
    """The directory of the ready files; created for its owner alone if it is absent."""
    directory = state_directory / "run"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory


def ready_file(state_directory: Path, name: str) -> Path:
    """The ready file of the process called `name`: a worker, or `executor`."""
    return run_directory(state_directory) / f"{name}.ready"


def declare_ready(state_directory: Path, name: str) -> None:
    """Write the ready file of this process; call it once the process can work."""
    file = ready_file(state_directory, name)
    replace_file(file, json.dumps({"pid": os.getpid()}).encode())


def is_ready(state_directory: Path, name: str, pid: int) -> bool:
    """Whether the process `pid` has written its ready file."""
    try:
        content = json.loads(ready_file(state_directory, name).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("pid") == pid
