"""The shipper's checkpoint: how far each file has arrived at the broker, for its next start.

The shipper writes it whole: a draft, fsync, rename, fsync of the directory. It writes a position only after
the broker's acknowledgement. So after a kill or a power cut some lines are sent again and none is left out.
One shipper per state directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from midwatch.shippers.files.fingerprint import Probe
from midwatch.shippers.files.tail import FilePosition
from midwatch.streams.errors import ConfigurationError, UsageError
from midwatch.streams.failpoints import failpoint
from midwatch.streams.host.atomic_file import put_in_place, write_draft
from midwatch.streams.host.file_lock import LockTaken, lock
from midwatch.streams.records import Generation
from midwatch.streams.records.codec import UNREADABLE

_FILE = "checkpoint.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Remembered:
    """One file: its path, its identity, and how far it has arrived at the broker."""

    path: str
    generation: Generation
    position: FilePosition
    probe: Probe
    modified_ns: int
    finished: bool = False  # drained and closed; the entry stays, so that the file does not count as new


@dataclass(frozen=True, slots=True)
class SentPositions:
    """All files of one shipper. `incarnation` is that of its job, "" once the job has ended."""

    files: tuple[Remembered, ...] = ()
    incarnation: str = ""
    boot_id: str = ""
    version: int = _VERSION


class ShipperDirectory:
    """The state directory of one shipper at a time, with its checkpoint."""

    def __init__(self, path: Path) -> None:
        """Makes the directory and takes its lock.

        Raises:
            UsageError: another shipper holds the lock.
            ConfigurationError: the directory cannot be made or written.
        """
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = lock(path / "lock")
        except LockTaken as error:
            raise UsageError(
                "another shipper of the same job and node runs here",
                where=str(path),
                remedy="stop it, or tell the two apart with --node",
            ) from error
        except OSError as error:
            raise ConfigurationError(
                f"the shipper's state directory cannot be written: {error.strerror}",
                where=str(path),
                remedy="choose another one with --state-directory",
            ) from error

    def load(self) -> SentPositions:
        """The last checkpoint, or an empty one if there is none.

        Raises:
            ConfigurationError: the checkpoint exists and cannot be read.
        """
        file = self.path / _FILE
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return self._draft()
        except OSError as error:
            raise _unreadable(file, error.strerror or "") from error
        try:
            checkpoint = msgspec.json.decode(content, type=SentPositions)
        except UNREADABLE as error:
            raise _unreadable(file, str(error)) from error
        if checkpoint.version > _VERSION:
            raise _unreadable(file, f"a newer midwatch wrote it, in version {checkpoint.version}")
        return replace(checkpoint, files=tuple(_with(entry, _path_of) for entry in checkpoint.files))

    def _draft(self) -> SentPositions:
        """The very first checkpoint, if a kill came after its draft and before its rename.

        Half a draft counts as empty: the shipper had sent nothing yet.
        """
        try:
            checkpoint = msgspec.json.decode((self.path / f".{_FILE}").read_bytes(), type=SentPositions)
        except (OSError, *UNREADABLE):
            return SentPositions()
        if checkpoint.version > _VERSION:
            return SentPositions()
        return replace(checkpoint, files=tuple(_with(entry, _path_of) for entry in checkpoint.files))

    def save(self, checkpoint: SentPositions) -> None:
        """Replaces the checkpoint. When this returns, the checkpoint survives a power cut. Raises OSError."""
        stored = replace(checkpoint, files=tuple(_with(entry, _text_of) for entry in checkpoint.files))
        draft = self.path / f".{_FILE}"
        write_draft(draft, msgspec.json.encode(stored))
        failpoint("checkpoint")
        put_in_place(draft, self.path / _FILE)

    def close(self) -> None:
        """Releases the lock for another shipper."""
        os.close(self._lock)


def _with(entry: Remembered, change: Callable[[str], str]) -> Remembered:
    return replace(entry, path=change(entry.path))


def _text_of(path: str) -> str:
    """The path for JSON, which holds only text; a path of other bytes is written in hex."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"\0{os.fsencode(path).hex()}"
    return path


def _path_of(text: str) -> str:
    return os.fsdecode(bytes.fromhex(text[1:])) if text.startswith("\0") else text


def _unreadable(file: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the checkpoint cannot be read: {why}",
        where=str(file),
        remedy="remove it to send the files again from their beginning; lines sent twice do no harm",
    )
