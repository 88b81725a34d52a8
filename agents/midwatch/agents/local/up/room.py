"""Watches the room on the disk of the state directory, because full disks stop Kafka and Redis."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from midwatch.agents.local.up.processes import Say

LEAST = 32 << 20
"""Bytes below which the disk counts as full: Kafka makes its files 10 MiB at a time."""
_ENOUGH = 2 * LEAST
_LOOK_EACH_S = 1.0


def free_room(directory: Path) -> int:
    """The bytes that a user may still write there. Raises OSError."""
    return shutil.disk_usage(directory).free


class Room:
    """Says once that the disk is full, and once that there is room again."""

    def __init__(self, directory: Path, free: Callable[[Path], int] = free_room) -> None:
        self._directory = directory
        self._free = free
        self._full = False
        self._next = 0.0

    def look(self, now: float, say: Say) -> None:
        """Look once a second, by the clock of `now` (seconds)."""
        if now < self._next:
            return
        self._next = now + _LOOK_EACH_S
        try:
            free = self._free(self._directory)
        except OSError:
            return
        if not self._full and free < LEAST:
            self._full = True
            say(
                f"the disk of {self._directory} is full ({free >> 20} MiB are free): "
                "make room there, and midwatch goes on by itself"
            )
        elif self._full and free >= _ENOUGH:
            self._full = False
            say(f"the disk of {self._directory} has room again ({free >> 20} MiB are free)")
