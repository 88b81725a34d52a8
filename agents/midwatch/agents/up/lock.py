"""One `up` per state directory; the next one waits for the processes of a killed one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from midwatch.streams.errors import ConfigurationError, ServiceUnreachable
from midwatch.streams.readiness import run_directory

PATIENCE = 30.0
"""Seconds: longer than a supervisor takes to end a process that does not listen."""


@contextlib.contextmanager
def held(state_directory: Path, patience: float = PATIENCE) -> Iterator[int]:
    """The lock's descriptor. Supervisors of our processes inherit it, so it is free when the last is gone.

    Raises:
        ServiceUnreachable: another `up` runs with this state directory.
        ConfigurationError: the state directory cannot be used.
    """
    try:
        file = run_directory(state_directory) / "lock"
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigurationError(
            f"the state directory cannot be used: {error.strerror}",
            where=str(state_directory),
            remedy="choose another with --state-directory or MIDWATCH_STATE_DIRECTORY",
        ) from error
    try:
        _take(descriptor, state_directory, patience)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _take(descriptor: int, state_directory: Path, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        if _runs(holder) or time.monotonic() > deadline:
            raise ServiceUnreachable(
                f"`midwatch up` runs already with this state directory (pid {holder or 'unknown'})",
                where=str(state_directory),
                remedy="use it, stop it, or choose another with --state-directory",
            )
        time.sleep(0.05)


def _runs(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        pass
    return True
