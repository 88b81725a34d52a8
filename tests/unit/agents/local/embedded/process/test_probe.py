"""Whatever answers on a port, the probes say only whether it is our ready server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from midwatch.agents.local.embedded.process.ports import free_port
from midwatch.agents.local.embedded.process.probe import kafka_ready, redis_ready


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A server that gives one answer to the first bytes of a client, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


STRANGERS = [
    b"",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"-ERR unknown command\r\n-ERR unknown command\r\n",
    b"\x00\x00\x00\x04\x00\x00\x00\x01",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
]


@pytest.mark.parametrize("answer", STRANGERS)
def test_a_stranger_is_no_ready_server(answer: bytes) -> None:
    with answering(answer) as port:
        assert not kafka_ready(port, "midwatch", "secret")
    with answering(answer) as port:
        assert not redis_ready(port, "secret")


def test_nobody_is_no_ready_server() -> None:
    assert not kafka_ready(free_port(), "midwatch", "secret")
    assert not redis_ready(free_port(), "secret")


def test_a_kafka_that_refuses_the_password_is_not_ready() -> None:
    unsupported = (33).to_bytes(2, "big")
    with answering(b"\x00\x00\x00\x0a" + b"\x00\x00\x00\x01" + unsupported + bytes(4)) as port:
        assert not kafka_ready(port, "midwatch", "secret")


@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        (b"+OK\r\n+PONG\r\n", True),
        (b"+OK\r\n-LOADING the data are being read\r\n", False),
        (b"-WRONGPASS no\r\n-NOAUTH no\r\n", False),
    ],
)
def test_redis_is_ready_when_it_lets_us_in_and_has_its_data(answer: bytes, ready: bool) -> None:
    with answering(answer) as port:
        assert redis_ready(port, "secret") is ready
