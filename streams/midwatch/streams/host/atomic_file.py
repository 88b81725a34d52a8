"""Writes files that are on disk whole or not at all. Shell. Everything here raises OSError.

A write goes to a draft in the same directory. The draft is synced before it gets the file's name, and the
directory is synced after that. So no reader sees half a file, and no crash leaves one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Replaces the file's content, which is on disk when this returns. The last writer wins.

    `mode` holds from the first byte on. The umask applies to it, as for open(2).
    """
    with _drafted(path, content, mode) as draft:
        put_in_place(draft, path)


def create_if_absent(path: Path, content: bytes, *, mode: int = 0o666) -> bool:
    """Creates the file and returns True. Returns False and changes nothing if the name exists.

    This is a fence. Of all callers that share the directory, exactly one gets True, with its file on disk.
    The name comes from link(2), because rename(2) would replace a file that another caller created.
    """
    with _drafted(path, content, mode) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
    sync_directory(path.parent)
    return True


def write_draft(draft: Path, content: bytes, *, mode: int = 0o666) -> None:
    """The first half of `replace_file`, for callers that must know the draft's name. One writer at a time."""
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def put_in_place(draft: Path, path: Path) -> None:
    """The second half of `replace_file`: renames the draft to `path`."""
    draft.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Syncs the directory, so that its file names survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _drafted(path: Path, content: bytes, mode: int) -> Iterator[Path]:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        write_draft(draft, content, mode=mode)
        yield draft
    finally:
        draft.unlink(missing_ok=True)
