"""`effects/<key>`: that a start was made, once, by whom, and how it ended.

The name is the fence: it is made by link(2), which like O_EXCL fails where the name exists, and the content
is on disk before that, so no reader ever sees half a record and no crash leaves an empty one.
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
    """One start. `code` is the script's exit code, minus the signal that ended it, or None while it runs."""

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
    """Makes the start ours; False if it was made before. On disk when it returns True."""
    folder = directory / "effects"
    folder.mkdir(parents=True, exist_ok=True)
    return create_if_absent(folder / record.key, _content(record))


def replace(directory: Path, record: Record) -> None:
    """The same start with its end."""
    replace_file(directory / "effects" / record.key, _content(record))


def read(directory: Path, key: str) -> Record | None:
    """None when no start with this key was made."""
    if not KEY.fullmatch(key):
        return None
    try:
        fields = json.loads((directory / "effects" / key).read_text())
    except FileNotFoundError:
        return None
    known = {name: fields[name] for name in Record.__dataclass_fields__ if name in fields}
    return Record(**(known | {"argv": tuple(fields["argv"])}))


def read_all(directory: Path) -> tuple[Record, ...]:
    """All starts ever made here, in the order in which they were made."""
    folder = directory / "effects"
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    records = [record for name in names if (record := read(directory, name))]
    return tuple(sorted(records, key=lambda record: (record.started_at, record.pid)))


def move_to_past(directory: Path, record: Record) -> None:
    """Its key is free again; the record itself is kept, under `effects/past`."""
    folder = directory / "effects"
    past = folder / "past"
    past.mkdir(exist_ok=True)
    (folder / record.key).rename(past / f"{record.key}.{record.started_at:.3f}")
    sync_directory(past)
    sync_directory(folder)


def prune(directory: Path, ended_before: float) -> int:
    """Sets all starts aside that ended before then (seconds since 1970), and says how many: each look at the
    cluster reads all that are left, and no order of so long ago is valid any more."""
    old = [r for r in read_all(directory) if r.ended_at is not None and r.ended_at < ended_before]
    for record in old:
        move_to_past(directory, record)
    return len(old)


def _content(record: Record) -> bytes:
    return json.dumps(asdict(record)).encode()
