"""The ledger of a drill: what the training itself did, one JSON object on each line. It is the judge.

Its events:

- `start`: attempt, first_step, native_id, restarts, node, environment. `logged` is the size in bytes that
  each log file of this host had before.
- `save`: a checkpoint is complete.
- `fault`: a fault of this `kind` strikes.
- `term`: the training got SIGTERM.
- `overlap`: a second writer started while the first one lived.
- `done`: the training is finished, with its weights.

All events except `start` and `overlap` have `step`.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path


def note(directory: Path, event: str, **facts: object) -> None:
    """Appends one line to the ledger by one short write, which no other process can split."""
    record = {"t": round(time.time(), 3), "event": event, "pid": os.getpid(), **facts}
    handle = os.open(directory / "ledger.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, (json.dumps(record) + "\n").encode())
    finally:
        os.close(handle)


def open_attempt(directory: Path, first_step: int) -> int:
    """Notes this start and returns its number from 1. Notes `overlap` if an earlier writer still lives."""
    writer = os.open(directory / ".writer", os.O_RDWR | os.O_CREAT, 0o644)  # held until this process ends
    try:
        fcntl.flock(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note(directory, "overlap", writer=os.pread(writer, 32, 0).decode().strip())
    else:
        os.ftruncate(writer, 0)
        os.pwrite(writer, str(os.getpid()).encode(), 0)
    with (directory / ".starts").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        ledger = directory / "ledger.jsonl"
        lines = ledger.read_text().splitlines() if ledger.exists() else []
        attempt = 1 + [json.loads(line)["event"] for line in lines].count("start")
        environment = {key: os.environ.get(key) for key in ("MIDWATCH_JOB", "MIDWATCH_ATTEMPT")}
        native = os.environ.get("SLURM_JOB_ID") or str(os.getppid())
        note(
            directory,
            "start",
            attempt=attempt,
            first_step=first_step,
            native_id=native,
            restarts=int(os.environ.get("SLURM_RESTART_COUNT", "0")),
            node=os.environ.get("SLURMD_NODENAME", socket.gethostname()),
            environment=environment,
            logged=json.loads(os.environ.get("MIDWATCH_DRILL_LOGGED", "{}")),
        )
    return attempt
