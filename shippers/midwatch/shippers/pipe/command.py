"""`midwatch ship -- COMMAND`: runs the command, passes its output on, and ships a copy and its end. Shell.

It may be process 1 of a container: it passes signals on and reaps orphans. The command has a session and a
process group of its own, so that a signal reaches it once. After its end we kill the rest of its group, as
the kernel does in a container that lost process 1.

Nothing here waits for Kafka before the command's end. After it the wait is bounded. What has not arrived
stays in the spool; the next start with the same state directory sends it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from midwatch.shippers.messages import Report
from midwatch.shippers.pipe.ending import Ending, to_bytes
from midwatch.shippers.pipe.process import STARTING, PipeShipment
from midwatch.shippers.pipe.producer import Copies, written
from midwatch.streams.host.process_table import process_status

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as in a shell

_ENDS_A_JOB = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
_READ = 64 * 1024
_LAST_WORDS_S = 0.5
"""Longest silence of an output that a process outside the command's group still holds open."""

Prepare = Callable[[int, int], PipeShipment]
"""Makes the shipment of the command's process, by its pid and its start time in clock ticks."""


def run_command(
    argv: Sequence[str], prepare: Prepare, report: Report, *, unsent: Path | None, sink: int = 1
) -> int:
    """Runs the command to its end; returns its exit code in a shell's form, 128 + N after signal N.

    Writes its standard output and error to `sink`, in the order of its writes. `prepare` runs in another
    thread: a mistake in the settings stops no training. `unsent`: see `Copies`.
    """
    early: list[int] = []
    for number in PASSED_ON:  # before the start: by default such a signal would end us and leave the command
        signal.signal(number, lambda n, _: early.append(n))
    woken = _wakeups()
    output, command_end = os.pipe()
    try:
        command = subprocess.Popen(argv, stdout=command_end, stderr=command_end, start_new_session=True)
    except FileNotFoundError:
        report(f"{argv[0]} was not found")
        return NOT_FOUND
    except OSError as error:
        report(f"{argv[0]} cannot be run: {error.strerror}")
        return NOT_EXECUTABLE
    os.close(command_end)
    status = process_status(command.pid)  # while we have not asked for its end, its entry is there
    ticks = status.start_ticks if status else 0
    copies = Copies(lambda: prepare(command.pid, ticks), report, unsent)
    asked: list[int] = []
    ended: list[int] = []

    def pass_on(number: int, _: object) -> None:
        if ended:
            copies.hurry()
            return
        if number in _ENDS_A_JOB:
            asked.append(number)
        command.send_signal(number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    for signalled in early:
        pass_on(signalled, None)
    copies.start()
    pump = _Pump(output, woken, sink, copies)
    while command.poll() is None:
        pump.turn(None)
        _reap_orphans(command.pid, copies)
    ending = Ending(command.returncode, time.time(), asked=bool(asked))
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(command.pid, signal.SIGKILL)
    while pump.turn(_LAST_WORDS_S):
        pass
    ended.append(ending.code)
    copies.finish(to_bytes(ending))
    return 128 - ending.code if ending.code < 0 else ending.code


class _Pump:
    """Passes the command's output on at once, and leaves a copy."""

    def __init__(self, output: int, woken: int, sink: int, copies: Copies) -> None:
        self._output: int | None = output
        self._woken = woken
        self._sink: int | None = sink
        self._copies = copies

    def turn(self, at_most: float | None) -> bool:
        """Waits for output or a signal. Returns False at the output's end, or when nothing came in time."""
        ends = [self._woken] if at_most is None else []
        ready = select.select([*ends, *([] if self._output is None else [self._output])], [], [], at_most)[0]
        if self._woken in ready:
            os.read(self._woken, 4096)
        if self._output is None or self._output not in ready:
            return False
        data = os.read(self._output, _READ)
        if not data:
            os.close(self._output)
            self._output = None
            return False
        if self._sink is not None and not written(self._sink, data):
            self._sink = None
        self._copies.add(data)
        return True


def _wakeups() -> int:
    """A descriptor that can be read after each signal, also after a child's end."""
    woken, waker = os.pipe()
    for end in (woken, waker):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # the default action would write nothing
    return woken


def _reap_orphans(command: int, copies: Copies) -> None:
    """Reaps children that we did not start: process 1 inherits them. Leaves our own to their owners."""
    with STARTING, contextlib.suppress(ChildProcessError):
        while (child := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if child.si_pid == command or copies.started(child.si_pid):
                return
            os.waitpid(child.si_pid, 0)
