"""`effects/<key>`: the record of one start, with its process and its end.

The name is the fence. link(2) makes it, and like O_EXCL fails where the name exists. The content is on disk
before that: no reader sees half a record, and no crash leaves an empty one.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from midwatch.streams.host.atomic_file import create_if_absent, replace_file, sync_directory

KEY = re.compile(r"[0-9A-Za-z]{8,64}")


@dataclass(frozen=True, slots=True)
class Record:
    """One start. `code` is the script's exit code, minus the signal's number, or None while it runs."""

    key: str
    pid: int  # of the shim, which leads the process group
    ticks: int  # its start time: clock ticks since boot
    boot: str
    user: str
    argv: tuple[str, ...]
    cwd: str
    started_at: float
    code: int | None = None
    cancelled: bool = False
    reason: str = ""
    ended_at: float | None = None


def create(directory: Path, record: Record) -> bool:
    """Creates the record; False if it exists already. The record is on disk when this returns True."""
    folder = directory / "effects"
    folder.mkdir(parents=True, exist_ok=True)
    return create_if_absent(folder / record.key, _content(record))


def replace(directory: Path, record: Record) -> None:
    """Overwrites the record of a start, to add its end."""
    replace_file(directory / "effects" / record.key, _content(record))


def read(directory: Path, key: str) -> Record | None:
    """The record of a start; None when no start has this key."""
    if not KEY.fullmatch(key):
        return None
    try:
        return _record((directory / "effects" / key).read_text())
    except FileNotFoundError:
        return None


def read_all(directory: Path) -> tuple[Record, ...]:
    """The records under `effects`, in the order of their starts; not those under `effects/past`."""
    folder = directory / "effects"
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    records = [record for name in names if (record := read(directory, name))]
    return tuple(sorted(records, key=lambda record: (record.started_at, record.pid)))


def read_past(directory: Path) -> tuple[Record, ...]:
    """The records under `effects/past`, in no order."""
    folder = directory / "effects" / "past"
    return tuple(_record(file.read_text()) for file in folder.iterdir()) if folder.is_dir() else ()


def move_to_past(directory: Path, record: Record) -> None:
    """Frees the key of a start: moves its record to `effects/past`."""
    folder = directory / "effects"
    past = folder / "past"
    past.mkdir(exist_ok=True)
    (folder / record.key).rename(past / f"{record.key}.{record.started_at:.3f}")
    sync_directory(past)
    sync_directory(folder)


def prune(directory: Path, ended_before: float) -> int:
    """Moves all starts that ended before `ended_before` (seconds since 1970) to `effects/past`.

    Returns their number. Each look at the cluster reads all records that are left. Commands for such old
    starts have expired.
    """
    old = [r for r in read_all(directory) if r.ended_at is not None and r.ended_at < ended_before]
    for record in old:
        move_to_past(directory, record)
    return len(old)


def _record(text: str) -> Record:
    fields = json.loads(text)
    known = {name: fields[name] for name in Record.__dataclass_fields__ if name in fields}
    return Record(**(known | {"argv": tuple(fields["argv"])}))


def _content(record: Record) -> bytes:
    return json.dumps(asdict(record)).encode()
