"""What is done to a whole midwatch while it rescues a training, each as a function of the scene."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from integration.chain.installation import WORKERS, Installation, midwatch
from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints
from midwatch.streams.worker.readiness import is_ready
from processes import alive, processes_of, wait_for

OURS = (*WORKERS, "executor")
AWAY_S = 60.0
"""Longer than the longest timeout of a worker's request, which is 30 s."""
KNOWN_EVERYWHERE = ("connection.json", "signing.key", "signing.pub")
"""What a state directory on another host has in common with the first one's."""


@dataclass
class Scene:
    """The processes of one installation, its servers, and the seed's randomness."""

    watch: Installation
    servers: EmbeddedStack
    stack: Endpoints
    job: str
    random: random.Random

    def pid(self, name: str) -> int:
        """Of one of our processes, as it is now."""
        return self.watch.processes[name].pid

    def shippers(self) -> list[int]:
        """The shippers that the shims of the job have started."""
        found = []
        for pid in processes_of(self.job):
            with contextlib.suppress(OSError):
                if b"\0ship\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def redis(self) -> Any:
        return redis.Redis.from_url(self.stack.redis_url, socket_timeout=5)

    def pause(self, least: float, most: float) -> None:
        """An outage lasts: here the passing of time is the fault."""
        until = time.monotonic() + self.random.uniform(least, most)
        wait_for(lambda: time.monotonic() > until, "the outage is over", most + 60)


def _kill(name: str) -> Callable[[Scene], None]:
    def killed(scene: Scene) -> None:
        pid = scene.pid(name)
        with contextlib.suppress(ProcessLookupError):  # it may be between two starts already
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not alive(pid), f"{name} is dead")

    return killed


def _freeze(scene: Scene) -> None:
    """Any of our processes stands still for longer than its session."""
    with _stopped(scene.pid(scene.random.choice(OURS))):
        scene.pause(3, 8)


def _join_and_leave(scene: Scene) -> None:
    """A second worker of any kind, on a host of its own, takes partitions over and gives them back."""
    kind, host = scene.random.choice(WORKERS), scene.watch.directory / "another-host"
    if not host.exists():
        host.mkdir(mode=0o700)
        for name in KNOWN_EVERYWHERE:
            shutil.copy(scene.watch.settings.state_directory / name, host)
    name = f"{kind} on another host"
    scene.watch.start(name, *midwatch("worker", kind), MIDWATCH_STATE_DIRECTORY=str(host))
    joined = scene.watch.processes[name]
    wait_for(lambda: is_ready(host, kind, joined.pid), f"the second {kind} reads")
    scene.pause(0, 5)
    joined.terminate()
    assert joined.wait(60) == 0, f"SIGTERM ended the second {kind} with {joined.returncode}"


def _kill_shipper(scene: Scene) -> None:
    wait_for(scene.shippers, "the job has a shipper")
    for pid in scene.shippers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _restart_broker(scene: Scene) -> None:
    scene.servers.kafka.restart()


def _kill_broker(scene: Scene) -> None:
    scene.servers.kafka.kill()
    scene.pause(0, 5)
    scene.servers.kafka.start()


def _take_broker_away(scene: Scene) -> None:
    scene.servers.kafka.kill()
    scene.pause(AWAY_S, AWAY_S)
    scene.servers.kafka.start()


def _restart_redis(scene: Scene) -> None:
    scene.servers.redis.restart()


def _kill_redis(scene: Scene) -> None:
    scene.servers.redis.kill()
    scene.pause(0, 5)
    scene.servers.redis.start()


def _freeze_redis(scene: Scene) -> None:
    with _stopped(scene.servers.redis.pid):
        scene.pause(2, 12)


def _starve_redis(scene: Scene) -> None:
    """Out of memory, under noeviction: it answers, and takes nothing."""
    client = scene.redis()
    before = client.config_get("maxmemory")["maxmemory"]
    client.config_set("maxmemory", "1")
    try:
        scene.pause(2, 12)
    finally:
        client.config_set("maxmemory", before)


def _roll_back_redis(scene: Scene) -> None:
    """It comes back with the files of some seconds ago."""
    directory = scene.servers.redis.directory
    copy = Path(f"{directory}.older")
    shutil.copytree(directory, copy)
    scene.pause(1, 10)
    scene.servers.redis.kill()
    shutil.rmtree(directory)
    copy.rename(directory)
    scene.servers.redis.start()


def _empty_redis(scene: Scene) -> None:
    scene.redis().flushall()


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


INJECTIONS: dict[str, Callable[[Scene], None]] = {
    **{f"{name} killed": _kill(name) for name in OURS},
    "shipper killed": _kill_shipper,
    "any of them frozen": _freeze,
    "worker joins and leaves": _join_and_leave,
    "broker restarted": _restart_broker,
    "broker killed": _kill_broker,
    "broker away": _take_broker_away,
    "Redis restarted": _restart_redis,
    "Redis killed": _kill_redis,
    "Redis frozen": _freeze_redis,
    "Redis out of memory": _starve_redis,
    "Redis rolled back": _roll_back_redis,
    "Redis emptied": _empty_redis,
}
