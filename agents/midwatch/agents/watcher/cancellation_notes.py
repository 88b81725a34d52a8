"""Cancellation notes: who ends a start on purpose. The scheduler often cannot tell.

The executor writes a note before it cancels a start, so the watcher does not blame a person. `midwatch run`
notes the person who pressed Ctrl-C. Each note is a small file in the state directory.
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
    """Writes a note; it is on disk when this returns. Of several notes on one start, the first counts."""
    path = _path(state_directory, incarnation)
    path.parent.mkdir(parents=True, exist_ok=True)
    create_if_absent(path, msgspec.json.encode(_Note(incarnation, person)))


def cancellation_of(state_directory: Path, incarnation: str) -> CancellationNote | None:
    """The note on a start; None if nobody on this host cancelled it."""
    try:
        note = msgspec.json.decode(_path(state_directory, incarnation).read_bytes(), type=_Note)
    except FileNotFoundError:
        return None
    return CancellationNote(note.person)


def _path(state_directory: Path, incarnation: str) -> Path:
    return state_directory / "endings" / content_hash({"incarnation": incarnation})[:32]
