"""A server process under its supervisor, as midwatch holds it."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from midwatch.agents.local.embedded.errors import ServerFailed
from midwatch.streams.host.process_table import start_ticks

GRACE = 20
"""Seconds between SIGTERM and SIGKILL."""

LOG_LIMIT = 4 << 20
"""Bytes of a log before it is renamed to `.1`, in place of the previous `.1`."""

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_JAVA_MEDDLERS = ("_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH")


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Removes variables that change Java's options, and sets a locale that can encode any path."""
    kept = {name: value for name, value in environment.items() if name not in _JAVA_MEDDLERS}
    return kept | {"LC_ALL": "C.UTF-8"}


class Child:
    """One running server. It ends when this object's process ends, even by kill -9.

    `keep_open` are file descriptors that stay open until the server has ended: only then is the lock of the
    state directory free. Ctrl-C does not reach the server, because it has its own session.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        directory: Path,
        log: Path,
        keep_open: tuple[int, ...] = (),
    ) -> None:
        self.name = name
        self._owner = os.getpid()
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", _SUPERVISOR, log, str(LOG_LIMIT), str(GRACE), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env=clean_environment(os.environ),
            start_new_session=True,
            pass_fds=keep_open,
        )
        _children.add(self)
        atexit.register(self.stop)
        assert self._supervisor.stdout is not None  # noqa: S101 (PIPE above; for mypy)
        with self._supervisor.stdout as answer:
            pid_line = answer.readline()
        self.pid = int(pid_line or 0)
        self._begun = start_ticks(self.pid)
        if not self.pid:
            self.stop()
            raise ServerFailed(
                f"{name} cannot be started: {command[0]}", where=str(log), remedy="the log says why"
            )

    @property
    def exit_status(self) -> int | None:
        """The server's exit status, or 128 + n if signal n ended it; None while it runs."""
        return self._supervisor.poll()

    def stop(self) -> None:
        """Ends the server (SIGTERM, after GRACE seconds SIGKILL) and returns when it has ended."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.stop)
        self.let_go()
        try:
            self._supervisor.wait(GRACE + 5)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
        if self._supervisor.returncode < 0 and start_ticks(self.pid) == self._begun:
            # Somebody killed the supervisor. Linux then kills the server, and the pid may be another
            # process's by now. Elsewhere we must kill it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Sends SIGKILL to the server itself, like a crash, and returns when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            if self.exit_status is None:
                os.kill(self.pid, signal.SIGKILL)
        self._supervisor.wait()
        self.stop()

    def let_go(self) -> None:
        """Closes our end of the pipe. The supervisor then ends the server."""
        with contextlib.suppress(OSError):
            if self._supervisor.stdin is not None:
                self._supervisor.stdin.close()


_children: weakref.WeakSet[Child] = weakref.WeakSet()


def _forget_in_fork() -> None:
    """A forked process must not hold the pipes: the servers would outlive their owner."""
    for child in list(_children):
        child.let_go()


os.register_at_fork(after_in_child=_forget_in_fork)
