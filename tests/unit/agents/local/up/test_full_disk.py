"""A full disk under `up`: what is said, and that a server is tried again until it starts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from midwatch.agents.local.embedded.errors import DiskFull
from midwatch.agents.local.up.room import LEAST, Room
from midwatch.agents.local.up.services import Services
from midwatch.streams.settings.schema import Settings


class Server:
    """It dies once and cannot start while the disk is full. After a failed start it knows of no failure."""

    name = "Kafka"

    def __init__(self) -> None:
        self.died = True
        self.disk_full = True
        self.starts = 0

    def failure(self) -> DiskFull | None:
        return DiskFull("the disk is full") if self.died else None

    def restart(self) -> None:
        self.starts += 1
        self.died = False
        if self.disk_full:
            raise DiskFull("no space for its settings")


def test_a_server_whose_start_failed_is_tried_again_until_it_starts() -> None:
    kafka, redis, said = Server(), Server(), list[str]()
    redis.died = False
    services = Services(Settings(), cast(Any, SimpleNamespace(kafka=kafka, redis=redis)))
    for second in range(60):
        services.look(float(second), said.append)
    assert kafka.starts > 3
    assert len(said) == 2, said  # that it ended, and once why it does not start
    kafka.disk_full = False
    for second in range(60, 80):
        services.look(float(second), said.append)
    assert said[2:] == ["Kafka answers again"]
    assert redis.starts == 0


def test_a_full_disk_is_said_once_and_room_again_once() -> None:
    said = list[str]()
    free = iter([LEAST, 0, 0, LEAST, 0, 3 * LEAST, 3 * LEAST])
    room = Room(Path("/state"), lambda _: next(free))
    for second in range(7):
        room.look(float(second), said.append)
    assert [line.partition(" (")[0] for line in said] == [
        "the disk of /state is full",
        "the disk of /state has room again",
    ]
    assert "goes on by itself" in said[0]


def test_a_disk_that_cannot_be_asked_says_nothing() -> None:
    def gone(_: Path) -> int:
        raise FileNotFoundError

    said = list[str]()
    Room(Path("/state"), gone).look(0.0, said.append)
    assert said == []
