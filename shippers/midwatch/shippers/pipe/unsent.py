"""Spools that outlive their shipper: below the state directory, until Kafka has all of them. Shell.

Each start of `midwatch ship -- COMMAND` has a folder there. Its owner holds the folder's lock as long as it
lives. A folder without an owner holds what Kafka did not get; the next start sends it first. What stays after
that is bounded.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from midwatch.shippers.pipe.spool import FOLDER_PREFIX, segments
from midwatch.streams.host.atomic_file import replace_file
from midwatch.streams.host.file_lock import LockTaken, lock
from midwatch.streams.host.process_table import boot_id, start_ticks
from midwatch.streams.records import Origin
from midwatch.streams.records.codec import UNREADABLE

MOST_SPOOLS = 32
"""Spools that are kept, those of starts that live included. Each holds 256 MiB at most."""
MOST_BYTES = 1024 * 1024 * 1024
"""Bytes that these spools may hold together."""

_SENDER = "sender.json"


@dataclass(frozen=True, slots=True)
class SpoolSender:
    """What a later start must know of the spool's: whose lines these are, and whether it reports the end."""

    origin: Origin
    reports_end: bool = False


def unsent_directory(state_directory: Path) -> Path:
    """The directory of the spools of all commands that run with this state directory."""
    return state_directory / "unsent"


def make(directory: Path) -> Path:
    """Makes a new folder for a spool and takes its lock until this process ends. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = directory / f"{FOLDER_PREFIX}{secrets.token_hex(8)}"
    folder.mkdir(0o700)
    lock(folder / "lock")
    return folder


def note_sender(folder: Path, sender: SpoolSender) -> None:
    """Keeps the sender in the spool's folder. Raises OSError."""
    replace_file(folder / _SENDER, msgspec.json.encode(asdict(sender)))


def left_over(directory: Path) -> Iterator[tuple[Path, SpoolSender]]:
    """The folders without an owner, oldest first. Takes the lock of each one until this process ends."""
    folders = [folder for folder in directory.glob(f"{FOLDER_PREFIX}*") if folder.is_dir()]
    for folder in sorted(folders, key=_made_at):
        with contextlib.suppress(LockTaken, OSError, *UNREADABLE):
            held = lock(folder / "lock")
            try:
                yield folder, msgspec.json.decode((folder / _SENDER).read_bytes(), type=SpoolSender)
            finally:
                os.close(held)


@dataclass(frozen=True, slots=True)
class DroppedSpools:
    """Spools that were deleted, and the bytes of output that went with them."""

    spools: int = 0
    size: int = 0


def drop_oldest(directory: Path, spools: int = MOST_SPOOLS, size: int = MOST_BYTES) -> DroppedSpools:
    """Deletes folders without an owner, the oldest first, until the rest is within both bounds.

    A start that never got as far as to note its sender left a folder too. Such folders go first.
    """
    folders = sorted((f for f in directory.glob(f"{FOLDER_PREFIX}*") if f.is_dir()), key=_made_at)
    sizes = {folder: _size(folder) for folder in folders}
    left, total = len(folders), sum(sizes.values())
    dropped = DroppedSpools()
    for folder in folders:
        if left <= spools and total <= size:
            break
        with contextlib.suppress(LockTaken, OSError):
            held = lock(folder / "lock")
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)
            left, total = left - 1, total - sizes[folder]
            dropped = DroppedSpools(dropped.spools + 1, dropped.size + sizes[folder])
    return dropped


def living_process(origin: Origin) -> int | None:
    """The process that the origin names, if it still runs here; else None."""
    words = origin.incarnation.split(":")
    if len(words) != 3 or words[0] != "local" or not (words[1] + words[2]).isdigit():
        return None
    pid, ticks = int(words[1]), int(words[2])
    with contextlib.suppress(OSError):
        return pid if origin.boot_id == boot_id() and start_ticks(pid) == ticks else None
    return None


def _size(folder: Path) -> int:
    """The bytes of output in the folder. A file that goes meanwhile counts as none."""
    total = 0
    with contextlib.suppress(OSError):
        for segment in segments(folder):
            total += segment.path.stat().st_size
    return total


def _made_at(folder: Path) -> float:
    with contextlib.suppress(OSError):
        return (folder / _SENDER).stat().st_mtime
    return 0.0
