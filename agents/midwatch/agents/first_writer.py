"""A file that is written whole or not at all, by whoever comes first."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_first(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """On disk when it returns; a file that is there already stands as it is. Raises OSError."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()
