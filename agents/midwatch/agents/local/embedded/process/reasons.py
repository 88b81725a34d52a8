"""Turns the last lines of a server's log into an error with a remedy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from midwatch.agents.local.embedded.errors import (
    DiskFull,
    EmbeddedStackError,
    NotWritable,
    PortTaken,
    ServerFailed,
    StateDirectoryDamaged,
    StateDirectoryInUse,
    StateDirectoryNewer,
)

_LAST_LINES = 4
_MARK = "=== start"
_ROOM_FOR_A_LOG = 1 << 20


@dataclass(frozen=True, slots=True)
class Reason:
    """A pattern in a server's log, and the error and remedy that stand for it."""

    pattern: str
    error: type[EmbeddedStackError]
    what: str
    remedy: str


REASONS = (
    Reason(
        r"Address already in use",
        PortTaken,
        "another program uses its port",
        "stop that program, or choose another port or none; midwatch then takes a free one",
    ),
    Reason(
        r"Failed to acquire lock on file \.lock",
        StateDirectoryInUse,
        "another broker uses this state directory",
        "stop it first, or choose another state directory",
    ),
    Reason(
        r"No space left on device|unsafe memory access operation",
        DiskFull,
        "the disk of the state directory is full",
        "make room and start again; acknowledged data is kept",
    ),
    Reason(
        r"Read-only file system|AccessDenied|Permission denied",
        NotWritable,
        "the state directory cannot be written",
        "give it to your user again, or choose another one on a local disk",
    ),
    Reason(
        r"Can't read version|MetadataParseException|UnsupportedVersionException"
        r"|Can't handle RDB format version",
        StateDirectoryNewer,
        "a newer server wrote the state directory",
        "upgrade midwatch, or choose another state directory: the data cannot be downgraded",
    ),
    Reason(
        r"Invalid cluster\.id|No readable meta\.properties|doesn't match previous"
        r"|Bad file format reading the append|Error reading the append only file"
        r"|AOF .* (?:doesn't|does not) exist|Invalid AOF manifest",
        StateDirectoryDamaged,
        "the data in the state directory is damaged or incomplete",
        "restore it from a backup, or move the directory away and start with an empty one",
    ),
    Reason(
        r"UnsupportedClassVersionError",
        ServerFailed,
        "this Java is too old",
        "let JAVA_HOME name Java 17 or newer, or install midwatch[embedded]",
    ),
    Reason(
        r"NoClassDefFoundError|ClassNotFoundException",
        ServerFailed,
        "no locked jar holds a class that it needs",
        "please report it, with the log",
    ),
    Reason(
        r"OutOfMemoryError|Could not reserve enough space|insufficient memory|[Cc]annot allocate memory",
        ServerFailed,
        "the machine has not enough free memory for it",
        "end other programs, or use Kafka and Redis on another machine",
    ),
)


def last_start(text: str) -> str:
    """The part of a log since the last start of the server."""
    return text[max(text.rfind(_MARK), 0) :]


def failure(
    name: str, text: str, *, exit_status: int, log: Path, free: int = _ROOM_FOR_A_LOG
) -> EmbeddedStackError:
    """The error for a server that ended by itself with `text` in its log since its start.

    `free` is the bytes left on its disk. On a full disk the log may not mention it.
    """
    if free < _ROOM_FOR_A_LOG:
        text += "No space left on device"
    for reason in REASONS:
        if re.search(reason.pattern, text):
            return reason.error(f"{name} stopped: {reason.what}", where=str(log), remedy=reason.remedy)
    lines = [line for line in text.splitlines() if line and not line.startswith(("\tat ", _MARK))]
    last = "".join(f"\n    {line}" for line in lines[-_LAST_LINES:]) or " nothing"
    return ServerFailed(
        f"{name} stopped (exit {exit_status}); the end of its log:{last}",
        where=str(log),
        remedy="start again; if it stops again, read the log",
    )
