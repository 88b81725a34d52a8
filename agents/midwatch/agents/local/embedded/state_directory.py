"""The state directory of one stack: private, locked while in use. It keeps password and ports."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import weakref
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from midwatch.agents.local.embedded.errors import (
    DiskFull,
    NotWritable,
    StateDirectoryDamaged,
    StateDirectoryInUse,
    StateDirectoryNewer,
)
from midwatch.streams.host.atomic_file import replace_file
from midwatch.streams.host.file_lock import LockTaken, open_lock, take

LEAST_ROOM = 256 << 20
"""Bytes that must be free. Kafka dies at once, without a reason, if it cannot map its files."""

FORMAT = 1

_DYING = 25.0
"""Seconds that servers of a killed midwatch may need to end. They hold the lock until then."""


@dataclass(frozen=True, slots=True)
class Node:
    """What a stack keeps between starts. Ports are 0 before the first start."""

    password: str = field(repr=False)
    kafka_version: str
    kafka_port: int = 0
    controller_port: int = 0
    redis_port: int = 0
    format: int = FORMAT


class ServiceDirectory:
    """An opened, locked state directory; `close` frees it. A missing one is made with mode 0700.

    The kernel frees the lock however its holder dies. The supervisors of the servers share it
    (`lock_descriptor`), so a new start waits for the servers of a killed midwatch.
    """

    def __init__(self, path: Path, *, least_room: int = LEAST_ROOM, patience: float = _DYING) -> None:
        self.path = path.expanduser().absolute()
        self.logs = self.path / "logs"
        self._owner = os.getpid()
        self._locked = False
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self.path.stat().st_uid != os.getuid():
                raise _not_writable(self.path, "it belongs to another user")
            self.path.chmod(0o700)
            self.lock_descriptor = open_lock(self.path / "lock")
        except OSError as error:
            raise _not_writable(self.path, error.strerror or str(error)) from error
        _open_directories.add(self)
        try:
            self._lock(patience)
            self._check_room(least_room)
            self._make(self.logs)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self.lock_descriptor >= 0:
            if os.getpid() == self._owner and self._locked:
                os.ftruncate(self.lock_descriptor, 0)
            os.close(self.lock_descriptor)
            self.lock_descriptor = -1

    def make(self, name: str) -> Path:
        """A directory below this one. Makes it if it is absent."""
        directory = self.path / name
        self._make(directory)
        return directory

    def read_node(self, kafka_version: str) -> Node:
        """The stored node, or a new one with a new password.

        Raises StateDirectoryNewer if a newer Kafka or midwatch wrote it: neither can be undone.
        """
        file = self.path / "node.json"
        try:
            node = _node(json.loads(file.read_bytes()))
        except FileNotFoundError:
            return Node(password=secrets.token_urlsafe(24), kafka_version=kafka_version)
        except (ValueError, TypeError) as error:
            raise StateDirectoryDamaged(
                f"the file cannot be read: {error}",
                where=str(file),
                remedy="delete this one file; the data stays, the next start makes password and ports anew",
            ) from error
        except OSError as error:
            raise _not_writable(self.path, error.strerror or str(error)) from error
        if node.format > FORMAT or _as_numbers(node.kafka_version) > _as_numbers(kafka_version):
            raise StateDirectoryNewer(
                f"a newer midwatch, with Kafka {node.kafka_version}, wrote the state directory",
                where=str(self.path),
                remedy="upgrade midwatch, or choose another state directory: the data cannot be downgraded",
            )
        return node

    def write_node(self, node: Node) -> None:
        """Stores the node, whole or not at all."""
        write_private(self.path / "node.json", json.dumps(asdict(node), indent=1) + "\n")

    def _lock(self, patience: float) -> None:
        try:
            take(self.lock_descriptor, patience_s=patience)
        except LockTaken as error:
            holder = error.holder or "the servers of a stack that was killed"
            raise StateDirectoryInUse(
                f"the state directory is in use by {holder}",
                where=str(self.path),
                remedy="stop it first, or choose another state directory",
            ) from None
        except OSError as error:
            raise _not_writable(self.path, f"it cannot be locked: {error.strerror}") from error
        self._locked = True

    def _check_room(self, least: int) -> None:
        free = shutil.disk_usage(self.path).free
        if free < least:
            raise DiskFull(
                f"only {free >> 20} MiB are free, and {least >> 20} MiB are needed",
                where=str(self.path),
                remedy="make room there, or choose a state directory on another disk",
            )

    def _make(self, directory: Path) -> None:
        try:
            directory.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise _not_writable(self.path, error.strerror or str(error)) from error


def write_private(file: Path, text: str) -> None:
    """Replaces a file's content at once. Only its owner can read it, also during the write."""
    try:
        replace_file(file, text.encode(), mode=0o600)
    except OSError as error:
        raise _not_writable(file, error.strerror or str(error)) from error


def _not_writable(path: Path, reason: str) -> NotWritable:
    return NotWritable(
        f"the state directory cannot be used: {reason}",
        where=str(path),
        remedy="choose a state directory of your own on a local disk with room",
    )


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _node(document: object) -> Node:
    """The node of a file that this or a newer midwatch wrote. It ignores fields that a newer one added."""
    if not isinstance(document, dict):
        raise TypeError("not an object")
    known: dict[str, Any] = {kept.name: document.get(kept.name) for kept in fields(Node)}
    for name, value in known.items():
        if type(value) is not (str if name in ("password", "kafka_version") else int):
            raise TypeError(f"{name} is {value!r}")
    return Node(**known)


_open_directories: weakref.WeakSet[ServiceDirectory] = weakref.WeakSet()


def _forget_in_fork() -> None:
    """A forked process must not hold the lock after its parent is gone."""
    for directory in list(_open_directories):
        directory.close()


os.register_at_fork(after_in_child=_forget_in_fork)
