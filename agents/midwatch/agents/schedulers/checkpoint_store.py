"""Where checkpoints lie: a path of this machine, or a URL `s3://BUCKET/FOLDER` of an object store.

The store is read through s3fs, which is fsspec's file system for S3 (the extra `s3`). Address and credentials
come from where every client of S3 looks: `AWS_*` variables, `~/.aws`, or the machine's role.
Nothing is written to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from midwatch.streams.errors import ConfigurationError, UsageError

S3 = "s3://"
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_CONNECT_S, _READ_S, _TRIES = 5, 20, 2  # the executor waits for the answer, and a later look comes anyway


@dataclass(frozen=True, slots=True)
class StoredStat:
    """Size in bytes, and seconds since 1970 by the store's clock. A folder is as young as its newest file."""

    st_size: int
    st_mtime: float


@dataclass(frozen=True, slots=True)
class _Store:
    """A file system of fsspec, and what its folders held when they were first looked at."""

    files: Any
    listings: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def listing(self, key: str) -> dict[str, dict[str, Any]]:
        """The entries of a folder by name. Raises OSError; FileNotFoundError where nothing lies."""
        if key not in self.listings:
            with _as_os_error():
                found = self.files.ls(key, detail=True)
            entries = {str(each["name"]).rstrip("/"): each for each in found}
            # An object that is named as its folder marks an empty folder.
            self.listings[key] = {
                name.rpartition("/")[2]: each for name, each in entries.items() if name != key
            }
        return self.listings[key]


@dataclass(frozen=True, slots=True, eq=False)
class StoredPath:
    """A place in an object store, with those parts of `Path` that the search for checkpoints uses.

    It sees the store as it was at the first look into each folder. Make a new one for a new look.
    """

    store: _Store
    key: str

    def __str__(self) -> str:
        return S3 + self.key

    def __truediv__(self, name: str) -> StoredPath:
        return StoredPath(self.store, f"{self.key}/{name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredPath) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    @property
    def parent(self) -> StoredPath:
        return StoredPath(self.store, self.key.rpartition("/")[0])

    def iterdir(self) -> Iterator[StoredPath]:
        return (self / name for name in self.store.listing(self.key))

    def rglob(self, pattern: str) -> Iterator[StoredPath]:
        for entry in self.iterdir():
            if fnmatchcase(entry.name, pattern):
                yield entry
            if entry.is_dir():
                yield from entry.rglob(pattern)

    def glob(self, pattern: str) -> Iterator[StoredPath]:
        return (entry for entry in self.iterdir() if fnmatchcase(entry.name, pattern))

    def is_symlink(self) -> bool:
        return False

    def is_dir(self) -> bool:
        return self._kind() == "directory"

    def is_file(self) -> bool:
        return self._kind() == "file"

    def exists(self) -> bool:
        return self._kind() != ""

    def stat(self) -> StoredStat:
        if self.is_dir():
            files = [entry.stat() for entry in self.iterdir()]
            youngest = max((each.st_mtime for each in files), default=0.0)
            return StoredStat(sum(each.st_size for each in files), youngest)
        entry = self._entry()
        written = entry.get("LastModified")
        seconds = written.timestamp() if isinstance(written, datetime) else 0.0
        return StoredStat(int(entry.get("size") or 0), seconds)

    def read_bytes(self) -> bytes:
        with _as_os_error():
            return bytes(self.store.files.cat_file(self.key))

    def read_text(self, errors: str = "strict") -> str:
        return self.read_bytes().decode(errors=errors)

    def open(self, mode: str) -> Any:
        """The object as a file that is read in parts."""
        with _as_os_error():
            return self.store.files.open(self.key, mode)

    def _entry(self) -> dict[str, Any]:
        try:
            return self.store.listing(self.parent.key)[self.name]
        except KeyError as error:
            raise FileNotFoundError(f"{self} is not there") from error

    def _kind(self) -> str:
        try:
            if "/" not in self.key:  # a bucket: who may read it need not be allowed to list all buckets
                return "directory" if self.store.listing(self.key) else ""
            return str(self._entry()["type"])
        except FileNotFoundError:
            return ""


Place: TypeAlias = Path | StoredPath


def is_url(directory: str) -> bool:
    """Whether the text is a URL, and no path of this machine."""
    return _URL.match(directory) is not None


def place(directory: str | Path) -> Place:
    """The place that a checkpoint directory names. It looks nothing up.

    Raises:
        UsageError: a URL of another store than S3, or one without a bucket.
        ConfigurationError: the extra `s3` is not installed.
    """
    text = str(directory)
    if not is_url(text):
        return Path(directory)
    key = text[len(S3) :].strip("/")
    if not text.lower().startswith(S3) or not key:
        raise UsageError(
            "no directory for checkpoints", where=text, remedy="name a path, or s3://BUCKET/FOLDER"
        )
    try:
        files = _client(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"))
    except ImportError as error:
        raise ConfigurationError(
            "checkpoints on s3 need the extra `s3`", where=text, remedy="pip install 'midwatch[s3]'"
        ) from error
    return StoredPath(_Store(files), key)


@lru_cache(maxsize=4)
def _client(endpoint: str | None) -> Any:
    """One client for all looks of this process: making one takes longer than a look."""
    from s3fs import S3FileSystem

    limits = {"connect_timeout": _CONNECT_S, "read_timeout": _READ_S, "retries": {"max_attempts": _TRIES}}
    files = S3FileSystem(
        endpoint_url=endpoint, skip_instance_cache=True, use_listings_cache=False, config_kwargs=limits
    )
    files.retries = _TRIES
    return files


def is_below(path: Place, directory: Place) -> bool:
    """Whether the path lies within the directory and is not the directory, with every link followed."""
    if isinstance(path, StoredPath) and isinstance(directory, StoredPath):
        return path.key.startswith(f"{directory.key}/") and ".." not in path.key.split("/")
    if isinstance(path, StoredPath) or isinstance(directory, StoredPath):
        return False
    return directory.resolve() in path.resolve().parents


@contextmanager
def _as_os_error() -> Iterator[None]:
    """The client's own errors as OSError: it reaches no server, or has no credentials."""
    from botocore.exceptions import BotoCoreError

    try:
        yield
    except BotoCoreError as error:
        raise OSError(str(error)) from error
