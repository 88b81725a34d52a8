"""The endpoint of a process: while it sees all, while it does not, and if its port is taken."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from midwatch.streams.telemetry.endpoint import Endpoint
from midwatch.streams.telemetry.meter import Health


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def reasons(port: int) -> Iterator[list[str]]:
    found: list[str] = []
    endpoint = Endpoint(("127.0.0.1", port), lambda: (b"up 1\n", "text/plain"), lambda: Health(tuple(found)))
    yield found
    endpoint.close()


def get(port: int, path: str) -> tuple[int, bytes]:
    asked = HTTPConnection("127.0.0.1", port, timeout=10)
    asked.request("GET", path)
    answer = asked.getresponse()
    return answer.status, answer.read()


@pytest.mark.capability("X-14")
def test_who_does_not_see_is_unknown_and_never_ready(port: int, reasons: list[str]) -> None:
    status, body = get(port, "/ready")
    assert (status, json.loads(body)["state"]) == (200, "ready")
    reasons.append("no answer of Kafka for 40 s")
    status, body = get(port, "/ready")
    assert (status, json.loads(body)) == (503, {"version": 1, "state": "unknown", "reasons": reasons})
    assert get(port, "/live")[0] == 200
    assert get(port, "/metrics") == (200, b"up 1\n")
    assert get(port, "/else")[0] == 404


def test_a_port_that_is_taken_ends_no_process(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        Endpoint(("127.0.0.1", port), lambda: (b"", ""), Health).close()
    assert "the watch goes on without them" in caplog.text
