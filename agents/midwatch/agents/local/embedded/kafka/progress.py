"""Shows a download: as a bar on a terminal, as one line elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """The progress of a download. `what` is a text for people; `done` and `total` are bytes."""

    what: str
    done: int
    total: int


ProgressListener = Callable[[DownloadProgress], None]


@contextmanager
def shown(what: str, total: int, stream: TextIO | None = None) -> Iterator[ProgressListener]:
    """Yields a listener that shows the download on `stream` (default: standard error)."""
    stream = stream or sys.stderr
    if not stream.isatty():
        print(f"downloading {what}, {total / 1e6:.1f} MB", file=stream, flush=True)
        yield lambda _progress: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bar(*columns, console=Console(file=stream)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda progress: bar.update(task, completed=progress.done)
