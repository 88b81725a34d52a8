"""Shell: a helper process does what keeps a core busy for a second or more.

A thread would halve the worker's speed meanwhile, because both take turns on Python's lock. It could not be
stopped either, and a process that ends while RE2 works in a thread is aborted.
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
_TOLD = 2000
T = TypeVar("T")


class HelperFailed(MidwatchError):
    """The process could not do its work, or was stopped."""


class HelperProcess:
    """One process answers one question. It prepares itself at once, so make it before it is needed.

    It ends with its answer, with `close`, or with us. Not thread-safe.
    """

    def __init__(self, prepare: Callable[..., None] | None = None, *given: object) -> None:
        """`prepare`, a function of a module, is called there; that it raises a MidwatchError is not told."""
        # Its output is its answer: one that outlives us must not hold the pipe of our log open.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if prepare is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(pickle.dumps((prepare, given)))
                self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def ask(self, over: threading.Event, work: Callable[..., T], *given: object) -> T:
        """What `work`, a function of a module, returns or raises (a MidwatchError) for what is given; all of
        it must be picklable. Raises HelperFailed for anything else, and once `over` is set."""
        return self.begin(work, *given)(over)

    def begin(self, work: Callable[..., T], *given: object) -> Callable[[threading.Event], T]:
        """`ask` in two: the process works until the answer is called for."""
        self._put(pickle.dumps((work, given)))

        def answer(over: threading.Event) -> T:
            result: T | MidwatchError = self._answer(over, work.__qualname__)
            if isinstance(result, MidwatchError):
                raise result
            return result

        return answer

    def _answer(self, over: threading.Event, work: str) -> Any:
        answer = said = b""
        while self._process.returncode is None:
            try:
                answer, said = self._process.communicate(timeout=_LOOK_S)
            except subprocess.TimeoutExpired:
                if over.is_set():
                    self.close()
                    raise HelperFailed(f"{work} was stopped") from None
        if self._process.returncode or not answer:
            told = said.decode(errors="replace")[-_TOLD:]
            raise HelperFailed(f"{work} failed in its own process:\n{told}")
        return pickle.loads(answer)  # noqa: S301  # our own child wrote it, for us alone

    def _put(self, question: bytes) -> None:
        # Not by `communicate`: called again after its timeout it would leave the rest unwritten.
        questions, self._process.stdin = self._process.stdin, None
        if questions is not None:
            with contextlib.suppress(BrokenPipeError), questions:
                questions.write(question)

    def close(self) -> None:
        """Returns when it is gone."""
        self._process.kill()
        self._process.communicate()


def _answer() -> None:
    """The process: it does what it is told, and the answer to the last of it goes out."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not spoil the answer
    result: Any = None
    with contextlib.suppress(EOFError):
        while True:
            work, given = pickle.load(sys.stdin.buffer)  # noqa: S301  # our own parent wrote it
            try:
                result = work(*given)
            except MidwatchError as error:
                result = error
    answers.write(pickle.dumps(result))
    answers.close()
    # The answer counts as whole once we are gone, and to take hundreds of expressions down takes a while.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    _answer()
