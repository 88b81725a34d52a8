"""What a test reads of a scrape, and the ports for one."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from midwatch.streams.telemetry.start import PROCESSES


@dataclass(frozen=True)
class Sample:
    """One series of one scrape."""

    name: str
    labels: dict[str, str]
    value: float


def ports_of_all() -> int:
    """The first of enough free ports in a row."""
    while True:
        with ExitStack() as held, socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            base = int(first.getsockname()[1])
            try:
                for number in range(1, len(PROCESSES)):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", base + number))
            except OSError:
                continue
            return base


@dataclass(frozen=True)
class Scrapes:
    """The endpoints of one installation."""

    base: int

    def samples(self, process: str) -> list[Sample]:
        """All series of a process; none while it does not answer."""
        _, body = self._get(process, "/metrics")
        return list(_samples(body.decode()))

    def value(self, process: str, name: str, **labels: str) -> float | None:
        """The value of the only series of this name with these labels; None if there is none."""
        found = [
            sample.value
            for sample in self.samples(process)
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        assert len(found) < 2, f"{name} {labels} has {len(found)} series"
        return found[0] if found else None

    def ready(self, process: str) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer to the question of readiness; (0, {}) without an answer."""
        status, body = self._get(process, "/ready")
        return status, json.loads(body or b"{}")

    def _get(self, process: str, path: str) -> tuple[int, bytes]:
        asked = HTTPConnection("127.0.0.1", self.base + PROCESSES.index(process), timeout=10)
        try:
            asked.request("GET", path)
            answer = asked.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 0, b""
        finally:
            asked.close()


def _samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield Sample(sample.name, dict(sample.labels), sample.value)
