"""What Kafka and Redis share: start, wait until ready, stop, kill, restart."""

from __future__ import annotations

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from midwatch.agents.local.embedded.errors import EmbeddedStackError, PortTaken, ServerSilent
from midwatch.agents.local.embedded.process.child import Child
from midwatch.agents.local.embedded.process.ports import LOOPBACK, is_free
from midwatch.agents.local.embedded.process.reasons import failure, last_start

_POLL = 0.03


class Server(ABC):
    """One server of the stack. Not thread-safe. `start` after `stop` or `kill` uses the same port."""

    name: str
    patience: float
    """Seconds until a running server must answer; long enough for a loaded machine."""

    def __init__(self, directory: Path, log: Path, lock_descriptor: int) -> None:
        self.directory = directory
        self.log = log
        self._lock_descriptor = lock_descriptor
        self._child: Child | None = None

    @abstractmethod
    def prepare(self) -> Sequence[str]:
        """Writes the configuration. Returns the command to run in `directory`."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether the server serves a client that has the password."""

    @property
    @abstractmethod
    def ports(self) -> tuple[int, ...]:
        """The ports on which the server listens; the port for clients is first."""

    @property
    def pid(self) -> int:
        """The server's process id, not its supervisor's. Raises RuntimeError without a start."""
        if self._child is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.exit_status is None

    def start(self) -> None:
        """Starts the server and returns when it answers. Does nothing if it runs."""
        if not self.running:
            self.launch()
            self.await_ready()

    def launch(self) -> None:
        """Starts the process without waiting, so that two servers boot at once."""
        for port in self.ports:
            if not is_free(port):
                raise PortTaken(
                    f"another program uses the port of {self.name}",
                    where=f"{LOOPBACK}:{port}",
                    remedy="stop that program, or choose another port or none: midwatch takes a free one",
                )
        if self._child is not None:
            self._child.stop()
        self._child = Child(
            self.name,
            self.prepare(),
            directory=self.directory,
            log=self.log,
            keep_open=(self._lock_descriptor,),
        )

    def await_ready(self) -> None:
        """Returns when the server answers. Raises the error that its log gives, or ServerSilent."""
        deadline = time.monotonic() + self.patience
        while not self.answers():
            error = self.failure()
            if error is not None:
                self.stop()
                raise error
            if time.monotonic() > deadline:
                self.stop()
                raise ServerSilent(
                    f"{self.name} runs, but did not answer in {self.patience:.0f} s",
                    where=str(self.log),
                    remedy="check whether the machine is overloaded; the log shows what the server was doing",
                )
            time.sleep(_POLL)

    def failure(self) -> EmbeddedStackError | None:
        """The reason why the server ended by itself; None while it runs, or after `stop`."""
        if self._child is None or self._child.exit_status is None:
            return None
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return failure(
            self.name,
            last_start(text),
            exit_status=self._child.exit_status,
            log=self.log,
            free=shutil.disk_usage(self.directory).free,
        )

    def stop(self) -> None:
        """Ends the server by SIGTERM and returns when it has ended. Does nothing if it does not run."""
        if self._child is not None:
            self._child.stop()
            self._child = None
            self.stopped()

    def kill(self) -> None:
        """Sends SIGKILL, like a crash. `start` then starts the server again with its data."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def restart(self) -> None:
        """Stops the server, then starts it."""
        self.stop()
        self.start()

    def stopped(self) -> None:  # noqa: B027 (nothing to do for most)
        """Called after `stop` has ended the server."""
