"""Which checkpoint a job resumes from: on this machine by its files, in a pod by the link `latest`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from midwatch.agents.schedulers.checkpoint_names import folder_name
from midwatch.agents.schedulers.checkpoint_store import is_url, place
from midwatch.agents.schedulers.checkpoints import discover
from midwatch.agents.training_monitor.errors import AccessDenied, CheckpointNotFound
from midwatch.agents.training_monitor.head.access import AddressedHead, PodHead
from midwatch.streams.services.ray_jobs import HeadAnswer

_IN_POD = """
import json, os, sys
folder = sys.argv[1]
try:
    latest = os.path.realpath(os.path.join(folder, "latest"))
    print(json.dumps([os.path.isdir(folder), latest if os.path.isdir(latest) and os.listdir(latest) else ""]))
except PermissionError as error:
    print(json.dumps([True, "", str(error)]))
"""


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """The checkpoint to resume from. `path` "": none is complete. `passed_over`: newer ones, and why."""

    path: str = ""
    step: int | None = None
    passed_over: tuple[str, ...] = ()


def find_latest_checkpoint(checkpoint_dir: str) -> str:
    """The path of the newest complete checkpoint below a directory of this machine.

    Raises:
        CheckpointNotFound: the directory is missing, or holds no complete checkpoint.
        AccessDenied: it cannot be read.
    """
    found = look_here(checkpoint_dir)
    if not found.path:
        raise CheckpointNotFound.of(checkpoint_dir, found.passed_over)
    return found.path


def look(head: AddressedHead | PodHead, checkpoint_dir: str) -> FoundCheckpoint:
    """The checkpoint of a job of this head. A directory that is not here is looked up in the head's pod.

    There `latest` alone decides, for the files are not read.
    """
    if isinstance(head, AddressedHead) or is_url(checkpoint_dir) or Path(checkpoint_dir).is_dir():
        return look_here(checkpoint_dir)
    answer = head.execute(("python3", "-c", _IN_POD, checkpoint_dir))
    if isinstance(answer, HeadAnswer):
        return FoundCheckpoint(passed_over=(f"the pod's directory cannot be seen: {answer.error}",))
    there, latest, *denied = json.loads(answer)
    if denied:
        raise AccessDenied.of(denied[0], f"{head.name}:{checkpoint_dir}")
    if not latest:
        why = "`latest` names no checkpoint there" if there else "the pod has no such directory"
        return FoundCheckpoint(passed_over=(why,))
    return FoundCheckpoint(latest, step_of(latest))


def look_here(checkpoint_dir: str) -> FoundCheckpoint:
    """As `find_latest_checkpoint`, where none is no error. Raises AccessDenied."""
    directory = place(checkpoint_dir)
    try:
        found = discover(directory)
    except PermissionError as error:
        raise AccessDenied.of(str(error.strerror or error), checkpoint_dir) from error
    except OSError as error:
        return FoundCheckpoint(passed_over=(f"it cannot be read: {error.strerror or error}",))
    passed = [f"{passed.path.name}: {passed.reason}" for passed in found.passed_over]
    if not directory.exists():
        passed.append("there is no such directory")
    if found.latest is None:
        return FoundCheckpoint(passed_over=tuple(passed))
    step = found.latest.step if found.latest.unit == "step" else None
    return FoundCheckpoint(str(found.latest.path), step, tuple(passed))


def step_of(path: str) -> int | None:
    """The step that the checkpoint's name tells; None if it tells none."""
    named = folder_name(Path(path).name)
    return named.number if named is not None and named.unit == "step" else None
