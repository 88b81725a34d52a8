"""Ports are chosen where no client is lent one."""

from __future__ import annotations

import socket

import pytest

from midwatch.agents.local.embedded.errors import PortTaken
from midwatch.agents.local.embedded.process.ports import free_port, is_free
from midwatch.agents.local.embedded.stack import EmbeddedStack


@pytest.fixture
def listener() -> socket.socket:
    server = socket.socket()
    server.bind(("127.0.0.1", free_port()))
    server.listen()
    return server


def test_a_port_with_a_listener_is_not_free(listener: socket.socket) -> None:
    with listener:
        assert not is_free(listener.getsockname()[1])
    assert is_free(free_port())


def test_free_ports_lie_below_those_that_systems_lend_to_clients() -> None:
    ports = {free_port() for _ in range(50)}
    assert all(1024 < port < 32768 for port in ports)


def test_a_port_to_avoid_is_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([20001, 20001, 20002])
    monkeypatch.setattr("random.randint", lambda *_: next(draws))
    monkeypatch.setattr("midwatch.agents.local.embedded.process.ports.is_free", lambda _port: True)
    assert free_port(avoid=(20001,)) == 20002


@pytest.mark.parametrize("port", [-1, 65536, 99999])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(PortTaken, match="is not a port"):
        EmbeddedStack._choose("Kafka", port, 0, ())
