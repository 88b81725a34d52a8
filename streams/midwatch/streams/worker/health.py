"""Health files: a process at work writes every few seconds how it fares, and a health check reads that.

The check contacts nothing and imports no Faust, so that it may run every few seconds. A file that nobody
renews means the same as one that names a trouble: the process hangs, is stopped, or is gone.

Several processes of one name may share a state directory, also from several containers. Each has a file of
its own. A check judges the files of its own host name.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from midwatch.streams.errors import MidwatchError
from midwatch.streams.host.process_table import start_ticks
from midwatch.streams.services.reachable import check_kafka
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.readiness import run_directory

EVERY_S = 2.0
STALE_S = 15.0
"""Seconds after which a file that was not renewed means that its process stands still."""
STARTING = "it is still starting"


class HealthFile:
    """The health file of this process. `write` renews it every `EVERY_S` seconds at most. It never raises."""

    def __init__(self, state_directory: Path, name: str) -> None:
        with contextlib.suppress(OSError):  # without a file the check fails and says so
            for file, writer, since in _files(state_directory, name):
                if start_ticks(writer) != since:
                    file.unlink(missing_ok=True)
        pid = os.getpid()
        whose = f"{socket.gethostname()}@{pid}@{start_ticks(pid)}"
        self._file = state_directory / "run" / f"{name}@{whose}.health"
        self._state_directory = state_directory
        self._written = float("-inf")
        self._trouble: str | None = None

    def write(self, trouble: str) -> None:
        """`trouble`: why the process does not do its work, or "" if it does."""
        now = time.monotonic()
        if trouble == self._trouble and now < self._written + EVERY_S:
            return
        draft = self._file.with_name(f".{self._file.name}.{secrets.token_hex(4)}")
        with contextlib.suppress(OSError):  # a full disk must not end a worker
            run_directory(self._state_directory)
            draft.write_text(json.dumps({"at": now, "trouble": trouble}))
            draft.rename(self._file)  # not synced: after a power cut there is no process to speak for
            self._written, self._trouble = now, trouble

    def remove(self) -> None:
        """The process ends as it should: nothing is left to judge."""
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)


def trouble_of(state_directory: Path, name: str, now: float, stale_s: float = STALE_S) -> str:
    """Why the processes called `name` on this host are not healthy, or "". `now`: monotonic seconds."""
    found = [each for each in _files(state_directory, name) if start_ticks(each[1]) == each[2]]
    if not found:
        return f"no {name} that started to work runs here with the state directory {state_directory}"
    for file, pid, _ in found:
        try:
            content: Any = json.loads(file.read_bytes())
            silent, trouble = now - float(content["at"]), str(content["trouble"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"the health file of process {pid} cannot be read: {error}"
        if silent > stale_s:
            return f"process {pid} stands still: it has said nothing for {silent:.0f} s"
        if trouble:
            return f"process {pid}: {trouble}"
    return ""


class KafkaProbe(threading.Thread):
    """Asks Kafka again and again, for a process whose own client does not say that Kafka is away."""

    def __init__(
        self, settings: Settings, every_s: float = 5.0, ask: Callable[..., None] = check_kafka
    ) -> None:
        super().__init__(name="kafka-probe", daemon=True)
        self._settings = settings
        self._every_s = every_s
        self._ask = ask
        self._end = threading.Event()
        self.trouble = STARTING

    def run(self) -> None:
        while not self._end.wait(0.0 if self.trouble == STARTING else self._every_s):
            try:
                self._ask(self._settings, self._every_s)
            except MidwatchError as error:
                self.trouble = error.what
            else:
                self.trouble = ""

    def stop(self) -> None:
        self._end.set()


def _files(state_directory: Path, name: str) -> Iterator[tuple[Path, int, int]]:
    """The health files of this host, with pid and start tick of their writers."""
    for file in (state_directory / "run").glob(f"{name}@*.health"):
        host, pid, ticks = file.name.removesuffix(".health").removeprefix(f"{name}@").rsplit("@", 2)
        if host == socket.gethostname() and pid.isdigit() and ticks.isdigit():
            yield file, int(pid), int(ticks)
