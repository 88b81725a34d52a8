"""Tells whether the job's processes on this node are alive. Shell."""

from __future__ import annotations

import os

from midwatch.streams.host.process_table import living, process_status


class JobProcess:
    """The job's process on this node, with the others of its session."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        first = process_status(pid)
        self._start_ticks = first.start_ticks if first else None
        self._leads_session = first is not None and first.session == pid

    def running(self) -> bool:
        """Whether the process itself still runs."""
        if process_status(os.getpid()) is None:  # a system without /proc
            return _signalable(self.pid)
        status = process_status(self.pid)
        return status is not None and status.lives and status.start_ticks == self._start_ticks

    def alive(self) -> bool | None:
        """Whether the process, or another of the session that it leads, still runs; None if unknown."""
        return self.running() or (self._leads_session and any(each.session == self.pid for each in living()))


def _signalable(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
