"""Runs the watch on this machine, from the first check to the end of the last process."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from midwatch.agents.local.up import lock
from midwatch.agents.local.up.live_steps import Following
from midwatch.agents.local.up.processes import Process, Say, await_ready, processes, stop_all
from midwatch.agents.local.up.room import Room
from midwatch.agents.local.up.services import Jars, Services, services
from midwatch.agents.signing import ensure_keys
from midwatch.streams.services.connection import remove_connection, write_connection
from midwatch.streams.services.topic_admin import make_topics
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.readiness import declare_ready, ready_file

READY_PATIENCE = 90.0
_LOOK_S = 0.1

Stop = Callable[[float], bool]


def run(settings: Settings, arguments: Sequence[str], jars: Jars, say: Say, *, executor: bool = True) -> None:
    """Runs the watch. Returns after Ctrl-C or SIGTERM, when everything that it started has ended.

    `arguments` are the options by which child processes find the same settings.

    Raises:
        MidwatchError: something could not be started. What was started before has been stopped.
    """
    with (
        lock.held(settings.state_directory) as descriptor,
        services(settings, jars, say) as running,
        # Only now: until here Ctrl-C may interrupt a download or a boot, and servers end with this process.
        _stoppable() as stop,
    ):
        settings = running.settings
        began = time.monotonic()
        made = make_topics(settings)
        ensure_keys(settings.state_directory)
        write_connection(settings)
        ours = processes(settings, arguments, descriptor, executor=executor)
        following = Following(settings, say)
        try:
            for process in ours:
                process.start()
            if not await_ready(ours, READY_PATIENCE, stop, say):
                return
            following.start()
            for line in _where(settings, running, ours, len(made), time.monotonic() - began):
                say(line)
            declare_ready(settings.state_directory, "up")
            _watch(running, ours, Room(settings.state_directory), stop, say)
        finally:
            say("stopping")
            ready_file(settings.state_directory, "up").unlink(missing_ok=True)
            remove_connection(settings)
            if following.is_alive():
                following.stop()
            stop_all(ours)
    say("stopped; all its processes have ended")


def _watch(running: Services, ours: Sequence[Process], room: Room, stop: Stop, say: Say) -> None:
    while not stop(_LOOK_S):
        now = time.monotonic()
        room.look(now, say)
        running.look(now, say)
        for process in ours:
            process.look(now, say)


@contextmanager
def _stoppable() -> Iterator[Stop]:
    """Yields a function that waits some seconds and returns whether a stop signal came."""
    signalled = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        signalled.set()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield signalled.wait
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _where(
    settings: Settings, running: Services, ours: Sequence[Process], made: int, seconds: float
) -> Iterator[str]:
    mode = (
        "acts on armed jobs" if settings.armed else "observes: it says what it would do (--act lets it act)"
    )
    yield f"ready in {seconds:.1f} s; midwatch {mode}"
    yield f"  Kafka    {', '.join(settings.kafka.bootstrap)} ({running.kind}), {made} topics made"
    yield f"  Redis    {settings.redis.url.rpartition('@')[2].removeprefix('redis://')} ({running.kind})"
    for process in ours:
        yield f"  {process.name:8} pid {process.pid}, {process.log}"
    yield f"  state    {settings.state_directory}"
    yield "next: midwatch run -- python train.py | midwatch jobs | midwatch why JOB; Ctrl-C stops all"
