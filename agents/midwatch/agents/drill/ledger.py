"""The judge of a drill: what the training itself says it did, one JSON object a line.

Events: `start` (attempt, first_step, native_id, restarts, node, environment, and in `logged` how many bytes
each log file of this host held before it), `save`, `fault` (kind), `term`, `overlap` (a second writer while
the first one lives), `done` (weights); all but `start` and `overlap` carry `step`.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path


def note(directory: Path, event: str, **facts: object) -> None:
    """Appends one line to the ledger by one short write, which other processes cannot tear."""
    record = {"t": round(time.time(), 3), "event": event, "pid": os.getpid(), **facts}
    handle = os.open(directory / "ledger.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, (json.dumps(record) + "\n").encode())
    finally:
        os.close(handle)


def open_attempt(directory: Path, first_step: int) -> int:
    """Notes our start and says the how manieth it is; a writer that still lives is noted as `overlap`."""
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
