"""Is the job's process tree alive on this node? Asked of /proc; shell.

A pid alone is no process: it comes again. So a process is its pid and the tick at which it started.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_DEAD = frozenset("ZXx")  # a zombie runs nothing; it waits to be counted


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """What /proc says of one process."""

    state: str
    session: int
    start_ticks: int  # since boot


def process_status(pid: int) -> ProcessStatus | None:
    """The status of a process, None if there is none, or no /proc to ask."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold anything
    return ProcessStatus(state=fields[0], session=int(fields[3]), start_ticks=int(fields[19]))


def start_ticks(pid: int) -> int:
    """When the process started, in ticks since boot; 0 where that cannot be known."""
    status = process_status(pid)
    return status.start_ticks if status else 0


def boot_id() -> str:
    """Another one after every boot of the node; "" where the system has none."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class JobProcess:
    """The process that a job is on this node, with all that it started in its session."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        first = process_status(pid)
        self._start_ticks = first.start_ticks if first else None
        self._leads_session = first is not None and first.session == pid

    def running(self) -> bool:
        """Whether the process itself still runs."""
        if not _PROC.joinpath("self/stat").exists():
            return _signalable(self.pid)
        status = process_status(self.pid)
        return status is not None and status.state not in _DEAD and status.start_ticks == self._start_ticks

    def alive(self) -> bool:
        """Whether it, or anything that it left behind in its session, still runs."""
        return self.running() or (self._leads_session and _session_lives(self.pid))


def _signalable(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _session_lives(session: int) -> bool:
    for name in os.listdir(_PROC):
        if name.isdigit():
            status = process_status(int(name))
            if status is not None and status.session == session and status.state not in _DEAD:
                return True
    return False
