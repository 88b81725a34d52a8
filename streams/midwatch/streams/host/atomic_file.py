"""Files that are on disk whole or not at all. Shell; everything here raises OSError.

The content is written to a draft in the same directory and synced before it gets its name. The directory is
synced behind that. So no reader sees half a file, and no crash leaves one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Gives the file this content, whatever it held; on disk when it returns. The last writer wins.

    `mode` holds from the first byte on. As for open(2), the umask is taken away from it.
    """
    with _drafted(path, content, mode) as draft:
        put_in_place(draft, path)


def create_if_absent(path: Path, content: bytes, *, mode: int = 0o666) -> bool:
    """Makes the file unless its name exists: then that file stands as it is, and the answer is False.

    This is a fence. Of all callers that share the directory exactly one is told True, and its file is on disk
    by then. The name is made by link(2), because rename(2) would take it from whoever made it first.
    """
    with _drafted(path, content, mode) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
    sync_directory(path.parent)
    return True


def write_draft(draft: Path, content: bytes, *, mode: int = 0o666) -> None:
    """The first half of `replace_file`, for a draft whose name must be known. One writer at a time."""
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def put_in_place(draft: Path, path: Path) -> None:
    """The second half of `replace_file`: the draft gets the name."""
    draft.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Returns when the names in the directory would survive a power cut."""
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
