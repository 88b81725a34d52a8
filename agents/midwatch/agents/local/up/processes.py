"""The processes of `up`: each ends when `up` is gone, and is started again whenever it ends by itself."""

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
EXECUTOR = "executor"

_STARTED_WRONG = (2, 3)
"""Exit codes that no second start would change: usage and configuration."""
_TAIL_LINES = 12

Say = Callable[[str], None]


class NotReady(MidwatchError):
    """A process of `up` did not become ready; its log says why."""


class Process:
    """One process of ours, started again whenever it ends. Not thread-safe."""

    def __init__(self, name: str, command: Sequence[str], settings: Settings, lock: int) -> None:
        self.name = name
        self.log = settings.state_directory / "logs" / f"{name}.log"
        self._state = settings.state_directory
        self.command = command
        self._lock = lock
        self._child: Child | None = None
        self._deaths: list[float] = []
        self._next_start = 0.0
        self._told_ready: int | None = None
        self._told_loop = False

    @property
    def pid(self) -> int | None:
        """Of the process itself; None while it waits to be started again."""
        return self._child.pid if self._child else None

    @property
    def ready(self) -> bool:
        """Whether it runs and has said that it is at work."""
        child = self._child
        return bool(child and child.exit_status is None and is_ready(self._state, self.name, child.pid))

    def start(self) -> None:
        """Starts it."""
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._child = Child(
            self.name, self.command, directory=Path.cwd(), log=self.log, keep_open=(self._lock,)
        )

    def look(self, now: float, say: Say) -> int | None:
        """Starts it again if it is due; returns its exit status if it has just ended."""
        if self._child is None:
            if now >= self._next_start:
                self.start()
            return None
        status = self._child.exit_status
        if status is None:
            if self._told_ready != self._child.pid and self.ready:
                self._told_ready, self._told_loop = self._child.pid, False
                say(f"{self.name} is ready (pid {self._child.pid})")
            return None
        self._child.stop()
        self._child = None
        self._deaths = [*backoff.recent(self._deaths, now), now]
        wait = backoff.pause(self._deaths, now)
        self._next_start = now + wait
        say(f"{self.name} ended with status {status}; it is started again in {wait:g} s")
        if backoff.loops(self._deaths, now) and not self._told_loop:
            self._told_loop = True
            say(f"{self.name} ends over and over, {len(self._deaths)} times in a minute; its log {self.log}:")
            for line in self.last_words():
                say(f"    {line}")
        return status

    def last_words(self) -> list[str]:
        """The end of its log."""
        try:
            with self.log.open(encoding="utf-8", errors="replace") as log:
                return [line.rstrip("\n") for line in deque(log, _TAIL_LINES)]
        except OSError:
            return []

    def let_go(self) -> None:
        """Asks it to end, without waiting."""
        if self._child:
            self._child.let_go()

    def stop(self) -> None:
        """Ends it and returns when it is gone."""
        if self._child:
            self._child.stop()
            self._child = None
        ready_file(self._state, self.name).unlink(missing_ok=True)


def processes(
    settings: Settings, arguments: Sequence[str], lock: int, *, executor: bool = True
) -> list[Process]:
    """The processes that make up the watch, none of them started yet.

    `arguments` are the options by which they find the same settings; `lock` a descriptor that stays open
    until the last of them is gone. Without `executor` that one runs on another host. Call it under the lock
    of the state directory: each worker is known to its group by a name of its own.
    """
    # -P: the directory that `up` runs in may hold a file that is called as one of our modules.
    base = [sys.executable, "-P", "-m", "midwatch"]
    name = settings.worker.instance_id or instance_id(settings.state_directory)
    commands = {each: [*base, "worker", each, f"--set=worker.instance_id={name}"] for each in WORKERS}
    if executor:
        commands[EXECUTOR] = [*base, EXECUTOR]
    return [Process(name, [*command, *arguments], settings, lock) for name, command in commands.items()]


def await_ready(running: Sequence[Process], patience: float, stop: Callable[[float], bool], say: Say) -> bool:
    """Looks after the processes until all are ready; False if `stop(seconds)` said to stop meanwhile.

    Raises:
        ConfigurationError: one refused its settings, as its log tells.
        NotReady: not all were ready within `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while not all(process.ready for process in running):
        now = time.monotonic()
        for process in running:
            status = process.look(now, say)
            if status in _STARTED_WRONG:
                raise ConfigurationError(
                    f"{process.name} refused to start:\n" + "\n".join(process.last_words()),
                    where=str(process.log),
                    remedy="correct what it names, then start `midwatch up` again",
                )
        if now > deadline:
            late = [process for process in running if not process.ready]
            raise NotReady(
                f"not ready within {patience:.0f} s: {', '.join(p.name for p in late)}; the log says:\n"
                + "\n".join(late[0].last_words()),
                where=str(late[0].log),
                remedy="the logs in the same directory tell what each was doing",
            )
        if stop(0.05):
            return False
    for process in running:
        process.look(time.monotonic(), say)
    return True


def stop_all(running: Sequence[Process]) -> None:
    """Ends the executor first, so that nothing is begun any more; then the workers, side by side."""
    for process in running:
        if process.name == EXECUTOR:
            process.stop()
    for process in running:
        process.let_go()
    for process in running:
        process.stop()
