"""Looks for the newest complete checkpoint of a job: at its end, and now and then while it runs. Shell."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Mapping
from pathlib import Path

from midwatch.agents.schedulers.resume import ResumePoint, newest
from midwatch.streams.records import CheckpointChoice, Spec

EVERY_S = 60.0
"""Seconds between two looks at the directory of a start that runs."""
PATIENCE_S = 5.0
"""Seconds for the look at an end. A file system that hangs must not hide the ends of other jobs."""


def saved_by(spec: Spec, patience_s: float = PATIENCE_S) -> CheckpointChoice | None:
    """The newest complete checkpoint in the directory of the spec, whoever wrote it; None if none is seen."""
    directory = spec.checkpoint_directory
    if not directory:
        return None
    answer = queue.SimpleQueue[ResumePoint | None]()
    look = threading.Thread(target=lambda: answer.put(newest(Path(directory))[0]), daemon=True)
    look.start()
    try:
        found = answer.get(timeout=patience_s)
    except queue.Empty:
        return None
    return _choice(found)


class RunningLooks:
    """Looks at the directories of running starts in one thread of its own, for a file system may hang.

    Then no directory is looked at any more, and nothing else waits.
    """

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._due: dict[str, float] = {}  # by incarnation
        self._seen: dict[str, CheckpointChoice] = {}
        self._requests = queue.SimpleQueue[tuple[str, str]]()
        self._answers = queue.SimpleQueue[tuple[str, ResumePoint | None]]()
        self._thread: threading.Thread | None = None
        self.looked = 0
        """Looks at a directory whose answer was taken."""

    def look(self, running: Mapping[str, str], now: float) -> dict[str, CheckpointChoice]:
        """Asks for looks at the directories of `running` that are due. Never waits.

        Returns the checkpoints by incarnation that are newer than at the look before.
        """
        self._due = {name: at for name, at in self._due.items() if name in running}
        self._seen = {name: seen for name, seen in self._seen.items() if name in running}
        for name, directory in running.items():
            if now >= self._due.get(name, now):
                self._due[name] = now + self._every_s
                self._requests.put((name, directory))
        if self._due and self._thread is None:
            self._thread = threading.Thread(target=self._work, name="checkpoints", daemon=True)
            self._thread.start()
        newer = {}
        while not self._answers.empty():
            name, found = self._answers.get()
            self.looked += 1
            choice = _choice(found)
            if choice is not None and name in running and choice != self._seen.get(name):
                self._seen[name] = newer[name] = choice
        return newer

    def _work(self) -> None:
        while True:
            name, directory = self._requests.get()
            found = None
            with contextlib.suppress(Exception):  # whatever lies there, the next directory gets its look
                found = newest(Path(directory))[0]
            self._answers.put((name, found))


def _choice(found: ResumePoint | None) -> CheckpointChoice | None:
    return CheckpointChoice(found.step, found.path, found.unit, found.written_ms) if found else None
