"""Packs a directory as Ray's own client does."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from midwatch.agents.schedulers.ray.ignored import Ignored
from midwatch.streams.errors import UsageError

LARGEST = 512 * 1024 * 1024
"""Bytes of a package that Ray takes."""

_OLDEST = (1980, 1, 1, 0, 0, 0)


def zipped(directory: Path, excludes: Sequence[str] = (), *, inside: bool = False) -> bytes:
    """The directory as an archive. The same content makes the same bytes.

    It leaves out what `.gitignore` and `.rayignore` name, and `excludes`. `inside`: the directory itself
    stands in the archive too, as Ray wants its Python modules.

    Raises:
        UsageError: the directory cannot be read, or is larger than Ray takes.
    """
    if not directory.is_dir():
        raise UsageError("it is no directory", where=str(directory), remedy="check --working-dir")
    memory, size = io.BytesIO(), 0
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(_files(directory, directory, (Ignored(directory, excludes),))):
            size += path.stat().st_size
            if size > LARGEST:
                raise UsageError(
                    f"it holds more than the {LARGEST >> 20} MiB that Ray takes",
                    where=str(directory),
                    remedy="name what to leave out in .rayignore, or in runtime_env's excludes",
                )
            inner = path.relative_to(directory.parent if inside else directory)
            about = zipfile.ZipInfo(inner.as_posix(), _OLDEST)
            about.external_attr = (path.stat().st_mode & 0xFFFF) << 16
            archive.writestr(about, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return memory.getvalue()


def _files(directory: Path, root: Path, ignored: tuple[Ignored, ...]) -> Iterator[Path]:
    here = (*ignored, *Ignored.files_in(directory))
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
        path = Path(entry.path)
        if any(rules.match(path, is_directory=entry.is_dir()) for rules in here):
            continue
        if entry.is_dir():
            yield from _files(path, root, here)
        elif entry.is_file():
            yield path
