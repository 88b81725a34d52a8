"""A lock that the kernel frees however its holder dies. Shell.

Each process that inherits the descriptor holds the lock too: it is free when the last of them has closed it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from pathlib import Path

_PAUSE_S = 0.05


class LockTaken(Exception):
    """Somebody else holds the lock. `holder` says who; "" if that process has gone and left heirs of it."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


def lock(path: Path, *, patience_s: float = 0.0) -> int:
    """Opens the lock's file and takes the lock; close the descriptor to let go. Raises as `take`."""
    descriptor = open_lock(path)
    try:
        take(descriptor, patience_s=patience_s)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_lock(path: Path) -> int:
    """The descriptor of the lock's file, which is made if it is absent. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def take(descriptor: int, *, patience_s: float = 0.0) -> None:
    """Takes the lock and writes into its file who has it.

    While a living process holds it there is no use in waiting. For the heirs of a dead one it waits up to
    `patience_s`. Processes of other hosts count as living.

    Raises:
        LockTaken: somebody else has it.
        OSError: this file system has no locks.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            holder = _holder(descriptor)
            if holder or time.monotonic() >= deadline:
                raise LockTaken(holder) from None
            time.sleep(_PAUSE_S)
    with contextlib.suppress(OSError):  # a full disk: the lock holds without it
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()}".encode(), 0)


def _holder(descriptor: int) -> str:
    pid, _, host = os.pread(descriptor, 300, 0).decode(errors="replace").partition(" ")
    if not pid.isdigit():
        return ""
    if host == socket.gethostname():
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return ""
        except PermissionError:
            pass
    return f"process {pid} on {host}"
