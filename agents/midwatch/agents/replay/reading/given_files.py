"""The files that a user gives to `midwatch replay`: paths, directories and standard input."""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from midwatch.agents.replay.reading.archives import Advance, nothing
from midwatch.agents.replay.reading.beside_the_logs import no_log
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.reading.text_check import not_text
from midwatch.streams.errors import UsageError
from midwatch.streams.host.clock import now_ms

_IN_MEMORY = 8 << 20  # bytes of standard input that need no file
_SHOWN = 32 << 20  # bytes of log that take long enough for a progress bar
_NOTED = 5  # files of a directory that are named one by one


@dataclass(frozen=True, slots=True)
class GivenFiles:
    """The logs, their bytes on the disk, and notes on files that are no logs."""

    files: tuple[LogFile, ...]
    size: int
    notes: tuple[str, ...]


@contextmanager
def given_files(names: Sequence[str], *, stdin: BinaryIO) -> Iterator[GivenFiles]:
    """The logs of these paths. `-` is standard input.

    In a directory it leaves out what is no text or no log by its name, with a note.

    Raises UsageError: a file cannot be read, or is no text.
    """
    with tempfile.TemporaryDirectory(prefix="midwatch-") as spool:
        files: list[LogFile] = []
        notes: list[str] = []
        try:
            for name in names:
                found, unread = _files(name, stdin, Path(spool))
                files += found
                notes += unread
            _allow_open(len(files))
            yield GivenFiles(tuple(files), sum(file.size() for file in files), tuple(notes))
        except OSError as error:
            raise UsageError(
                f"the log cannot be read: {error.strerror}",
                where=str(error.filename or " ".join(names)),
                remedy="give a file, a directory or -",
            ) from error


def _files(name: str, stdin: BinaryIO, spool: Path) -> tuple[list[LogFile], list[str]]:
    if name == "-":
        return [_checked(LogFile("-", _spooled(stdin, spool / "stdin"), now_ms() / 1000))], []
    path = Path(name)
    if not path.is_dir():
        return [_checked(LogFile(name, path, path.stat().st_mtime))], []
    files: list[LogFile] = []
    left_out: list[str] = []
    for inside in sorted(each for each in path.rglob("*") if each.is_file()):
        file = LogFile(str(inside), inside, inside.stat().st_mtime)
        head = file.head()
        reason = no_log(inside.relative_to(path), head) or next(iter(not_text(head) or ()), None)
        if reason is None:
            files.append(file)
        else:
            left_out.append(f"{inside}: {reason}, left out")
    if left_out and not files:
        raise UsageError(
            f"no file is a log: {left_out[0]}", where=name, remedy="name the file itself, or give text files"
        )
    more = len(left_out) - _NOTED
    rest = [f"{name}: {more} more files are no logs, left out"] if more > 0 else []
    return files, left_out[:_NOTED] + rest


def _checked(file: LogFile) -> LogFile:
    """The file. Raises UsageError if it is no text, or an archive without a readable beginning."""
    with file.open() as reader:
        head, damage = reader.read(1), reader.damage
    if damage and not head:
        raise UsageError(f"nothing in it can be read: {damage}", where=file.path, remedy="fetch it again")
    reason = not_text(file.head())
    if reason is not None:
        raise UsageError(f"this is no log but {reason[0]}", where=file.path, remedy=reason[1])
    return file


def _spooled(stdin: BinaryIO, file: Path) -> bytes | Path:
    """Standard input, because a replay reads the beginning twice: in memory, or in a file if it is large."""
    first = stdin.read(_IN_MEMORY)
    if len(first) < _IN_MEMORY:
        return first
    with file.open("wb") as out:
        out.write(first)
        shutil.copyfileobj(stdin, out, 1 << 20)
    return file


def _allow_open(count: int) -> None:
    """Allow as many open files at once, as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 64
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextmanager
def shown_progress(size: int) -> Iterator[Advance]:
    """A progress bar on stderr for many bytes, if that is a terminal."""
    if size < _SHOWN or not sys.stderr.isatty():
        yield nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=size)
        yield lambda count: progress.advance(task, count)
