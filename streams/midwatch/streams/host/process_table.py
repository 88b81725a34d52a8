"""Processes as /proc shows them. Shell, and Linux only.

A pid alone does not identify a process, because pids are reused. A pid with its start tick does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_DEAD = frozenset("ZXx")  # a zombie runs nothing and waits to be reaped


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One process. `start_ticks` counts clock ticks since boot."""

    pid: int
    state: str
    group: int
    session: int
    start_ticks: int

    @property
    def lives(self) -> bool:
        return self.state not in _DEAD


def process_status(pid: int) -> ProcessStatus | None:
    """The status of a process, or None if there is none. A dead process has one until it is reaped."""
    try:
        # The process name before the last bracket may hold any bytes, even half a character.
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return ProcessStatus(pid, fields[0], int(fields[2]), int(fields[3]), int(fields[19]))


def start_ticks(pid: int) -> int | None:
    """The clock tick at which the process started. None if it is gone or waits to be reaped."""
    status = process_status(pid)
    return status.start_ticks if status and status.lives else None


def group_members(group: int) -> list[int]:
    """Pids of the live processes of a process group. Raises OSError without a /proc."""
    return [status.pid for status in living() if status.group == group]


def living() -> Iterator[ProcessStatus]:
    """All live processes. Raises OSError without a /proc."""
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (status := process_status(int(entry.name))) and status.lives:
            yield status


def boot_id() -> str:
    """The id of this boot, from which start ticks count. Raises OSError if /proc has no id."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
