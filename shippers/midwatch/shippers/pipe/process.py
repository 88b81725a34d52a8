"""Starts the process that ships a pipe's spool, hands it its message, and keeps it running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from midwatch.streams.records import Origin
from midwatch.streams.settings.schema import KafkaSettings, Settings, ShipSettings
from midwatch.streams.settings.secret import Secret

PIPE_DRAIN = 10.0
"""Seconds after the end of the input within which the copy must arrive at the broker."""

STARTING = threading.Lock()
"""Held during a start, in which the process may run although `ShippingProcess.pid` does not name it yet."""

_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.5, 30.0


@dataclass(frozen=True, slots=True)
class PipeShipment:
    """The job whose output is shipped, and the settings for it."""

    origin: Origin
    settings: Settings
    pid: int | None = None
    drain: float = PIPE_DRAIN
    reports_end: bool = False
    """Whether the end of the process is ours to report: no scheduler knows it."""
    dropped: int = 0
    """Bytes of earlier output that were dropped before this start; its heartbeats count them."""


class ShippingProcess:
    """Keeps the shipping process running: starts it again when it dies, after longer and longer pauses."""

    def __init__(self, shipment: PipeShipment, folder: Path, report: Callable[[str], None]) -> None:
        self._message = json.dumps(to_child(shipment, folder, folder.name)).encode()
        self._report = report
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at = 0.0
        self._backoff = _FIRST_BACKOFF

    @property
    def pid(self) -> int | None:
        """The id of the present process."""
        return self._process.pid if self._process is not None else None

    def keep(self) -> None:
        """Starts the process if it does not run and its pause is over. Never waits."""
        now = time.monotonic()
        if self._process is not None and self._process.poll() is not None:
            self._report(
                f"the shipping process ended with status {self._process.returncode}; it starts again"
            )
            self._process = None
            self._start_at, self._backoff = now + self._backoff, min(self._backoff * 2, _LONGEST_BACKOFF)
        if self._process is None and now >= self._start_at:
            self._start()

    def ended(self, seconds: float, hurry: Callable[[], bool] = lambda: False) -> bool:
        """Waits for the process at most so many seconds; returns whether it shipped everything.

        Starts it again if it dies. `hurry` ends the wait.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not hurry():
            if self._process is not None and self._process.poll() == 0:
                return True
            self.keep()
            time.sleep(0.02)
        return False

    def kill(self) -> None:
        """Ends the process at once."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        try:
            with STARTING:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "midwatch.shippers.pipe.child"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
            if self._process.stdin is not None:
                self._process.stdin.write(self._message)
                self._process.stdin.close()
        except OSError as error:
            self._report(f"the shipping process cannot be started: {error.strerror}")
            self._process = None
            self._start_at = time.monotonic() + self._backoff


def to_child(shipment: PipeShipment, folder: Path, stream: str) -> dict[str, Any]:
    """The message for the process's standard input: no secret must stand on a command line."""
    kafka = {name: getattr(shipment.settings.kafka, name) for name in KafkaSettings.__slots__}
    return {
        "folder": str(folder),
        "stream": stream,
        "parent": os.getpid(),
        "pid": shipment.pid,
        "drain": shipment.drain,
        "dropped": shipment.dropped,
        "origin": asdict(shipment.origin),
        "kafka": {name: _plain(value) for name, value in kafka.items()},
        "topic": shipment.settings.topic_names.logs,
        "events": shipment.settings.topic_names.events if shipment.reports_end else "",
        "ship": asdict(shipment.settings.ship),
    }


def kafka_of(message: dict[str, Any]) -> KafkaSettings:
    """The Kafka settings in a message, read in the process."""
    fields = dict(message["kafka"])
    for name in ("password_file", "ca_file", "certificate_file", "key_file"):
        fields[name] = Path(fields[name]) if fields[name] else None
    fields |= {"bootstrap": tuple(fields["bootstrap"]), "password": Secret(fields["password"])}
    return KafkaSettings(**fields)


def ship_of(message: dict[str, Any]) -> ShipSettings:
    """The shipper's settings in a message, read in the process."""
    return ShipSettings(**message["ship"])


def _plain(value: object) -> object:
    if isinstance(value, Secret):
        return value.reveal()
    return str(value) if isinstance(value, Path) else value
