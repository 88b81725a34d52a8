"""Shell: a helper process does work that keeps a core busy for a second or more.

A thread would halve the worker's speed meanwhile, because both share Python's lock. Nor can a thread be
stopped. And if a process ends while RE2 works in one of its threads, it is aborted.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from midwatch.streams.errors import MidwatchError

_LOOK_S = 0.1
_SHOWN = 2000  # characters of its standard error
T = TypeVar("T")


class HelperFailed(MidwatchError):
    """The process could not do its work, or was stopped."""


class HelperProcess:
    """A process for one call. It prepares itself at once, so make it before it is needed.

    It ends after its result, by `close`, or with this process. Not thread-safe.
    """

    def __init__(self, prepare: Callable[..., None] | None = None, *arguments: object) -> None:
        """The process calls `prepare`, a function of a module. It ignores a MidwatchError from it."""
        # All its streams are pipes: a helper that outlives this process must not hold our log open.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if prepare is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(pickle.dumps((prepare, arguments)))
                self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, stop: threading.Event, work: Callable[..., T], *arguments: object) -> T:
        """The result of `work`, a function of a module, or the MidwatchError that it raises.

        Work, arguments and result must be picklable. Raises HelperFailed for any other error, and once
        `stop` is set.
        """
        return self.begin(work, *arguments)(stop)

    def begin(self, work: Callable[..., T], *arguments: object) -> Callable[[threading.Event], T]:
        """`ask` in two steps: the process works while the caller does other things."""
        self._send(pickle.dumps((work, arguments)))

        def result_of(stop: threading.Event) -> T:
            result: T | MidwatchError = self._result(stop, work.__qualname__)
            if isinstance(result, MidwatchError):
                raise result
            return result

        return result_of

    def _result(self, stop: threading.Event, work: str) -> Any:
        result = errors = b""
        while self._process.returncode is None:
            try:
                result, errors = self._process.communicate(timeout=_LOOK_S)
            except subprocess.TimeoutExpired:
                if stop.is_set():
                    self.close()
                    raise HelperFailed(f"{work} was stopped") from None
        if self._process.returncode or not result:
            shown = errors.decode(errors="replace")[-_SHOWN:]
            raise HelperFailed(f"{work} failed in its helper process:\n{shown}")
        return pickle.loads(result)  # noqa: S301  # our own child wrote it, for us alone

    def _send(self, request: bytes) -> None:
        # Not by `communicate`: called again after its timeout it would leave the rest unwritten.
        requests, self._process.stdin = self._process.stdin, None
        if requests is not None:
            with contextlib.suppress(BrokenPipeError), requests:
                requests.write(request)

    def close(self) -> None:
        """Ends the process, and returns when it is gone."""
        self._process.kill()
        self._process.communicate()


def _work() -> None:
    """The main function of the process. It makes all calls, and writes the result of the last one."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a print must not spoil the result
    result: Any = None
    with contextlib.suppress(EOFError):
        while True:
            work, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301  # our own parent wrote it
            try:
                result = work(*arguments)
            except MidwatchError as error:
                result = error
    output.write(pickle.dumps(result))
    output.close()
    # The parent waits for our end, and to free hundreds of expressions takes a while.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    _work()
