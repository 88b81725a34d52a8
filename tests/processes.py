"""Waiting for facts about processes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path


def wait_for(
    fact: Callable[[], object],
    what: str,
    limit: float = 120.0,
    *,
    seen: Callable[[], object] | None = None,
) -> None:
    """Returns when `fact` holds; fails the test when it does not within `limit` seconds.

    `seen` is asked for then, twice: so that a failure tells what is slow from what stands still.
    """
    deadline = time.monotonic() + limit
    while True:
        asked = time.monotonic()
        if fact():
            return
        now = time.monotonic()
        assert now < deadline, f"not within {limit} s: {what}{_twice(seen) if seen else ''}"
        # A look that took long (a whole topic was read for it) is followed by a longer pause: who asks must
        # not load what it waits for.
        time.sleep(min(max(0.02, 8 * (now - asked)), 2.0))  # between two looks at the fact


def _twice(seen: Callable[[], object], apart_s: float = 3.0) -> str:
    first = _look(seen)
    time.sleep(apart_s)  # what stands still shows only between two looks
    return f" (seen: {first}, and {apart_s} s later: {_look(seen)})"


def _look(seen: Callable[[], object]) -> object:
    try:
        return seen()
    except Exception as error:  # whatever fails here must not hide what the test waited for
        return error


def written(file: Path) -> bool:
    """Whether a whole line stands in the file: a shell makes it first and writes later."""
    return file.exists() and file.read_text().endswith("\n")


def alive(pid: int) -> bool:
    """Whether the process runs; a dead one that nobody has asked about (a zombie) does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def calls_of(pid: int) -> list[str]:
    """The command lines of the programs that the process has started and that still run."""
    children = (line.split() for line in map(_text, Path(f"/proc/{pid}/task").glob("*/children")))
    return [_text(Path(f"/proc/{child}/cmdline")).replace("\0", " ") for line in children for child in line]


def _text(file: Path) -> str:
    """What stands in a file of /proc; nothing when its process has gone."""
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wakes(pid: int) -> int:
    """How often the process's first thread gave up its core by itself, to wake again later."""
    (count,) = re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    return int(count)


def working_in(directory: Path) -> list[int]:
    """The processes whose working directory is `directory` or below it."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                if (process / "cwd").readlink().is_relative_to(directory):
                    found.append(int(process.name))
    return found


def processes_of(job: str) -> list[int]:
    """The live processes that midwatch started for the job of that last name, by their environment.

    A pid that the job once noted is no such proof: it may be another process's by now.
    """
    mark = re.compile(rb"(?:\A|\0)MIDWATCH_JOB=[^\0]*/" + re.escape(os.fsencode(job)) + rb"\0")
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.search((process / "environ").read_bytes()) and alive(int(process.name)):
                    found.append(int(process.name))
    return found


def end_processes_of(job: str) -> None:
    """kill -9 of all of them, and of what one of them starts meanwhile."""

    def gone() -> bool:
        left = processes_of(job)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    wait_for(gone, f"no process of {job} is left")
