"""Notes on who ended a start on purpose, written before the deed: the scheduler often cannot tell.

The executor notes its own ends, so that the watcher does not take them for a person's; `midwatch run` notes
the person who pressed Ctrl-C. One small file for each, in the state directory.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from midwatch.agents.watcher.sightings import CancellationNote
from midwatch.streams.host.atomic_file import create_if_absent
from midwatch.streams.records.codec import content_hash


class _Note(msgspec.Struct):
    incarnation: str
    person: str


def note_cancellation(state_directory: Path, incarnation: str, person: str = "") -> None:
    """On disk when it returns. The first note on a start stands: who came first ended it."""
    path = _path(state_directory, incarnation)
    path.parent.mkdir(parents=True, exist_ok=True)
    create_if_absent(path, msgspec.json.encode(_Note(incarnation, person)))


def cancellation_of(state_directory: Path, incarnation: str) -> CancellationNote | None:
    """None if nobody here ended it."""
    try:
        note = msgspec.json.decode(_path(state_directory, incarnation).read_bytes(), type=_Note)
    except FileNotFoundError:
        return None
    return CancellationNote(note.person)


def _path(state_directory: Path, incarnation: str) -> Path:
    return state_directory / "endings" / content_hash({"incarnation": incarnation})[:32]
