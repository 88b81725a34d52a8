"""A lock that the kernel frees however its holder dies. Shell.

Every process that inherits the descriptor also holds the lock. The lock is free when the last of them has
closed it.
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
    """Another process holds the lock. `holder` names the process that took it, or is "" if that one died."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


def lock(path: Path, *, patience_s: float = 0.0) -> int:
    """Opens the lock's file and takes the lock. Closing the descriptor releases it. Raises as `take`."""
    descriptor = open_lock(path)
    try:
        take(descriptor, patience_s=patience_s)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_lock(path: Path) -> int:
    """Opens the lock's file, and creates it if it is absent. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def take(descriptor: int, *, patience_s: float = 0.0) -> None:
    """Takes the lock and writes its holder into the file.

    Does not wait while the process that took the lock lives. After its death, waits up to `patience_s` for
    processes that inherited the lock. A holder on another host counts as living.

    Raises:
        LockTaken: another process holds the lock.
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
    with contextlib.suppress(OSError):  # on a full disk the lock holds without the text
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
