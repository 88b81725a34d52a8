"""Runs one server and ends it when midwatch is gone. A separate program; it needs the standard library only.

    python -I -S supervisor.py LOG LOG_BYTES GRACE_SECONDS COMMAND...

It prints the server's pid on standard output. It keeps the server's output in LOG, and in LOG.1 once LOG is
full. It ends the server when its own standard input ends. That is a pipe whose other end midwatch holds, so
it ends however midwatch dies. Its exit status is the server's, or 128 + n for signal n.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

CANNOT_START = 127
_PR_SET_PDEATHSIG = 1


class RotatingLog:
    """Appends to a file, and renames it when it is full. On a full disk it loses text; the server goes on."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit

    def write(self, text: bytes) -> None:
        with contextlib.suppress(OSError):
            if self._path.exists() and self._path.stat().st_size > self._limit:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
            with self._path.open("ab") as file:
                file.write(text)


def dies_with_us() -> Callable[[], None]:
    """A function for the server to call first: it asks Linux to kill the server when this process is killed.

    Linux sends the signal when the thread ends that started the server; here that is the main thread. Code
    between fork and exec is safe only in a process without other threads. So the supervisor is a process.
    """
    us = os.getpid()
    if sys.platform != "linux":
        return lambda: None
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return lambda: None

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != us:
            os._exit(CANNOT_START)

    return ask


def main(log_path: str, log_limit: str, grace: str, *command: str) -> int:
    log = RotatingLog(Path(log_path), int(log_limit))
    log.write(f"=== start {time.strftime('%Y-%m-%dT%H:%M:%S%z')} {command[0]}\n".encode())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=dies_with_us(),  # noqa: PLW1509 (no other thread runs yet)
        )
    except OSError as error:
        log.write(f"cannot start {command[0]}: {error.strerror}\n".encode())
        return CANNOT_START

    def end(*_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.pid, signal.SIGTERM)
            os.kill(server.pid, signal.SIGCONT)
        last_resort = threading.Timer(float(grace), server.kill)
        last_resort.daemon = True
        last_resort.start()

    signal.signal(signal.SIGTERM, end)
    sys.stdout.write(f"{server.pid}\n")
    sys.stdout.flush()
    os.close(sys.stdout.fileno())

    def end_with_midwatch() -> None:
        while os.read(0, 4096):
            pass
        end()

    def keep_output() -> None:
        assert server.stdout is not None  # noqa: S101 (PIPE above; for mypy)
        while text := os.read(server.stdout.fileno(), 65536):
            log.write(text)

    threading.Thread(target=end_with_midwatch, daemon=True).start()
    copying = threading.Thread(target=keep_output, daemon=True)
    copying.start()
    status = server.wait()
    copying.join(2)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    # os._exit: a thread that waits on standard input must not delay the end.
    os._exit(main(*sys.argv[1:]))
