"""Looks for the newest complete checkpoint of a job that has ended. Shell."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

from midwatch.agents.schedulers.resume import ResumePoint, newest
from midwatch.streams.records import CheckpointChoice, Spec

PATIENCE_S = 5.0
"""Seconds for one look. A file system that hangs must not keep the watcher from the ends of other jobs."""


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
    return CheckpointChoice(found.step, found.path, found.unit, found.written_ms) if found else None
