"""What Kafka and Redis have in common: started, waited for, stopped, killed and started again."""

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
    """Seconds until a server that runs must answer; generous, for a loaded machine."""

    def __init__(self, directory: Path, log: Path, lock_descriptor: int) -> None:
        self.directory = directory
        self.log = log
        self._lock_descriptor = lock_descriptor
        self._child: Child | None = None

    @abstractmethod
    def prepare(self) -> Sequence[str]:
        """Writes the configuration; the command to run in `directory`."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it does its work for a client that has the password."""

    @property
    @abstractmethod
    def ports(self) -> tuple[int, ...]:
        """The ports on which it listens; the clients' first."""

    @property
    def pid(self) -> int:
        """Of the server itself, not of its supervisor. Raises RuntimeError unless it was started."""
        if self._child is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.exit_status is None

    def start(self) -> None:
        """Starts it and returns when it answers; does nothing if it runs."""
        if not self.running:
            self.launch()
            self.await_ready()

    def launch(self) -> None:
        """Starts the process only, for two servers that boot side by side."""
        for port in self.ports:
            if not is_free(port):
                raise PortTaken(
                    f"the port of {self.name} is taken by another program",
                    where=f"{LOOPBACK}:{port}",
                    remedy="stop that program, or choose another port or none: then a free one is taken",
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
        """Returns when it answers. Raises the reason that its log gives, or ServerSilent."""
        deadline = time.monotonic() + self.patience
        while not self.answers():
            error = self.failure()
            if error is not None:
                self.stop()
                raise error
            if time.monotonic() > deadline:
                self.stop()
                raise ServerSilent(
                    f"{self.name} runs but gave no answer in {self.patience:.0f} s",
                    where=str(self.log),
                    remedy="is the machine overloaded? The log tells what it was doing",
                )
            time.sleep(_POLL)

    def failure(self) -> EmbeddedStackError | None:
        """Why it ended by itself; None while it runs, or after `stop`."""
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
        """Ends it in good order and returns when it is gone; does nothing if it does not run."""
        if self._child is not None:
            self._child.stop()
            self._child = None
            self.stopped()

    def kill(self) -> None:
        """SIGKILL: what a crash looks like to its clients. `start` brings it back with its data."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def restart(self) -> None:
        """`stop`, then `start`."""
        self.stop()
        self.start()

    def stopped(self) -> None:  # noqa: B027 (nothing to do for most)
        """Called after an end in good order."""
