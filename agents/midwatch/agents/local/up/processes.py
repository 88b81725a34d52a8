"""The processes of `up`. Each ends when `up` is gone; `up` starts again what ends by itself."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from midwatch.agents.launch import backoff
from midwatch.agents.local.embedded.process.child import Child
from midwatch.agents.local.up.instance import instance_id
from midwatch.streams.errors import ConfigurationError, MidwatchError
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.readiness import is_ready, ready_file

WORKERS = ("match", "detect", "decide")
MESSAGES = "messages"
"""Runs where the settings name a channel."""
EXECUTOR = "executor"
TRACE = "trace"
SHIP_RAY = "ship-ray"

_WRONG_START = (2, 3)
"""Exit codes after which a second start would fail too: usage and configuration."""
_TAIL_LINES = 12

Say = Callable[[str], None]


class NotReady(MidwatchError):
    """A process of `up` did not become ready; its log says why."""


class Process:
    """One process of `up`, started again whenever it ends. Not thread-safe."""

    def __init__(self, name: str, command: Sequence[str], settings: Settings, lock: int) -> None:
        self.name = name
        self.log = settings.state_directory / "logs" / f"{name}.log"
        self._state = settings.state_directory
        self.command = command
        self._lock = lock
        self._child: Child | None = None
        self._deaths: list[float] = []
        self._next_start = 0.0
        self._announced_ready: int | None = None
        self._announced_loop = False

    @property
    def pid(self) -> int | None:
        """The process id; None while the process waits for its next start."""
        return self._child.pid if self._child else None

    @property
    def ready(self) -> bool:
        """Whether the process runs and has declared itself ready."""
        child = self._child
        return bool(child and child.exit_status is None and is_ready(self._state, self.name, child.pid))

    def start(self) -> None:
        """Starts the process."""
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._child = Child(
            self.name, self.command, directory=Path.cwd(), log=self.log, keep_open=(self._lock,)
        )

    def look(self, now: float, say: Say) -> int | None:
        """Starts the process again if its pause is over. Returns its exit status if it has just ended."""
        if self._child is None:
            if now >= self._next_start:
                self.start()
            return None
        status = self._child.exit_status
        if status is None:
            if self._announced_ready != self._child.pid and self.ready:
                self._announced_ready, self._announced_loop = self._child.pid, False
                say(f"{self.name} is ready (pid {self._child.pid})")
            return None
        self._child.stop()
        self._child = None
        self._deaths = [*backoff.recent(self._deaths, now), now]
        wait = backoff.pause(self._deaths, now)
        self._next_start = now + wait
        say(f"{self.name} ended with status {status}; midwatch starts it again in {wait:g} s")
        if backoff.loops(self._deaths, now) and not self._announced_loop:
            self._announced_loop = True
            say(f"{self.name} ended {len(self._deaths)} times in a minute; the end of its log {self.log}:")
            for line in self.log_end():
                say(f"    {line}")
        return status

    def log_end(self) -> list[str]:
        """The last lines of its log."""
        try:
            with self.log.open(encoding="utf-8", errors="replace") as log:
                return [line.rstrip("\n") for line in deque(log, _TAIL_LINES)]
        except OSError:
            return []

    def let_go(self) -> None:
        """Asks the process to end, without waiting."""
        if self._child:
            self._child.let_go()

    def stop(self) -> None:
        """Ends the process and returns when it has ended."""
        if self._child:
            self._child.stop()
            self._child = None
        ready_file(self._state, self.name).unlink(missing_ok=True)


def processes(
    settings: Settings, arguments: Sequence[str], lock: int, *, executor: bool = True
) -> list[Process]:
    """The processes that make up the watch, none of them started yet.

    `arguments` are the options by which they find the same settings. `lock` is a descriptor that stays open
    until the last of them has ended. Without `executor`, the executor runs on another host. Where the
    settings name a Ray head, one more process ships its drivers' logs. Call it under the lock of the state
    directory, because no two workers of a group may have the same name.
    """
    # -P: the working directory may hold a file with the name of one of our modules.
    base = [sys.executable, "-P", "-m", "midwatch"]
    name = settings.worker.instance_id or instance_id(settings.state_directory)
    messages = settings.messages.configured or settings.extensions.channels
    workers = (*WORKERS, MESSAGES) if messages else WORKERS
    commands = {each: [*base, "worker", each, f"--set=worker.instance_id={name}"] for each in workers}
    if settings.telemetry.otlp:
        commands[TRACE] = [*base, "worker", TRACE]
    if executor:
        commands[EXECUTOR] = [*base, EXECUTOR]
    if settings.ray.address:
        commands[SHIP_RAY] = [*base, "ship", f"--ray={settings.ray.address}"]
    return [Process(name, [*command, *arguments], settings, lock) for name, command in commands.items()]


def await_ready(running: Sequence[Process], patience: float, stop: Callable[[float], bool], say: Say) -> bool:
    """Starts what ends until all processes are ready. Returns False if `stop(seconds)` is true meanwhile.

    Raises:
        ConfigurationError: a process refused its settings. The error quotes its log.
        NotReady: not all processes were ready within `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while not all(process.ready for process in running):
        now = time.monotonic()
        for process in running:
            status = process.look(now, say)
            if status in _WRONG_START:
                raise ConfigurationError(
                    f"{process.name} refused to start:\n" + "\n".join(process.log_end()),
                    where=str(process.log),
                    remedy="correct what it names, then start `midwatch up` again",
                )
        if now > deadline:
            late = [process for process in running if not process.ready]
            raise NotReady(
                f"not ready within {patience:.0f} s: {', '.join(p.name for p in late)}; the log says:\n"
                + "\n".join(late[0].log_end()),
                where=str(late[0].log),
                remedy="the logs in the same directory show what each was doing",
            )
        if stop(0.05):
            return False
    for process in running:
        process.look(time.monotonic(), say)
    return True


def stop_all(running: Sequence[Process]) -> None:
    """Ends the executor first, so that it begins no further act; then all workers at once."""
    for process in running:
        if process.name == EXECUTOR:
            process.stop()
    for process in running:
        process.let_go()
    for process in running:
        process.stop()
