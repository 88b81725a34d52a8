"""The lock that allows one `up` per state directory, and waits for processes of a killed `up`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from midwatch.streams.errors import ConfigurationError, ServiceUnreachable
from midwatch.streams.host.file_lock import LockTaken, lock
from midwatch.streams.worker.readiness import run_directory

PATIENCE = 30.0
"""Seconds; longer than a supervisor takes to end a process that ignores SIGTERM."""


@contextlib.contextmanager
def held(state_directory: Path, patience: float = PATIENCE) -> Iterator[int]:
    """Yields the held lock's descriptor. Supervisors inherit it, so it is free when the last has ended.

    Raises:
        ServiceUnreachable: another `up` runs with this state directory.
        ConfigurationError: the state directory cannot be used.
    """
    try:
        descriptor = lock(run_directory(state_directory) / "lock", patience_s=patience)
    except LockTaken as error:
        raise ServiceUnreachable(
            f"`midwatch up` runs already with this state directory ({error.holder or 'it is ending'})",
            where=str(state_directory),
            remedy="use it, stop it, or choose another with --state-directory",
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"the state directory cannot be used: {error.strerror}",
            where=str(state_directory),
            remedy="choose another with --state-directory or MIDWATCH_STATE_DIRECTORY",
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
