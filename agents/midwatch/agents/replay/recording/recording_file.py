"""The file of a recording: a head, then each record of a topic in a line of its own. Pure: bytes in and out.

    {"recording": 1, "job": "slurm:ada/llm", "limits": {…}, "policy": "verdict", …}
    {"topic": "events", "partition": 3, "offset": 17, "at_ms": 1763…, "key": "slurm:ada/llm", "value": {…}}

`topic` is the topic's short name. `value` is the record itself; `raw` is its base64, for a record that is
not one line of JSON. Version 2 adds rows of the topic `rules`: the bundles that activations name, by their
hashes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from midwatch.streams.errors import UsageError
from midwatch.streams.worker.fold import Message

VERSION = 2
WITHOUT_RULES = 1
"""The version of a recording without activations."""
Short = Literal["events", "incidents", "rules"]


@dataclass(frozen=True, slots=True)
class RecordingSource:
    """The partition that holds the job's records of one topic.

    `cut_ms`: append time of its oldest record, if Kafka had deleted older ones; None if the log was whole.
    """

    topic: str
    partition: int
    first_offset: int = 0
    cut_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The job, and the settings of the watch at the time of the export."""

    job: str
    events: RecordingSource
    incidents: RecordingSource
    limits: Mapping[str, float] = field(default_factory=dict)  # seconds; see midwatch.rules.detectors.limits
    policy: str = "verdict"  # of jobs whose spec names none
    retries: str = "documented"
    acting: bool = False
    recording: int = WITHOUT_RULES


@dataclass(frozen=True, slots=True)
class Recording:
    """A head, and the records of each topic in the order of their offsets. `rules`: the bundles."""

    head: Head
    events: tuple[Message, ...]
    incidents: tuple[Message, ...]
    rules: tuple[Message, ...] = ()


class _Row(msgspec.Struct, omit_defaults=True):
    topic: Short
    partition: int
    offset: int
    at_ms: int
    key: str | None = None
    headers: dict[str, str] = {}
    value: msgspec.Raw = msgspec.Raw()
    raw: str | None = None


_encoder = msgspec.json.Encoder()
_rows = msgspec.json.Decoder(_Row)
_heads = msgspec.json.Decoder(Head)


def head_line(head: Head) -> bytes:
    return _encoder.encode(head)


def row_line(short: Short, message: Message) -> bytes:
    """The line of one record. Keys and headers of a job are text, so it replaces bytes that are not UTF-8."""
    row = _Row(
        topic=short,
        partition=message.partition,
        offset=message.offset,
        at_ms=message.timestamp_ms,
        key=None if message.key is None else message.key.decode(errors="replace"),
        headers={name: value.decode(errors="replace") for name, value in message.headers},
    )
    if message.value is not None and _is_one_line_of_json(message.value):
        row.value = msgspec.Raw(message.value)
    elif message.value is not None:
        row.raw = base64.b64encode(message.value).decode()
    return _encoder.encode(row)


def read(lines: Iterable[bytes], where: str) -> Recording:
    """Read the recording from its lines.

    Raises:
        UsageError: the lines are not a recording, or one of a newer version.
    """
    rows = enumerate(lines, 1)
    head = _head(next(rows, (1, b""))[1], where)
    found: dict[Short, list[Message]] = {"events": [], "incidents": [], "rules": []}
    for number, line in rows:
        if not line.strip():
            continue
        try:
            row = _rows.decode(line)
            message = _message(row, head)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            raise _refused(f"line {number} is not a record: {error}", where) from error
        found[row.topic].append(message)
    return Recording(head, tuple(found["events"]), tuple(found["incidents"]), tuple(found["rules"]))


def lines_of(recording: Recording) -> Iterator[bytes]:
    """The lines of a recording's file, without line ends."""
    yield head_line(recording.head)
    for message in recording.rules:
        yield row_line("rules", message)
    for message in recording.events:
        yield row_line("events", message)
    for message in recording.incidents:
        yield row_line("incidents", message)


def _head(line: bytes, where: str) -> Head:
    try:
        plain: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        if int(plain.get("recording", 0)) > VERSION:
            raise _refused(
                f"version {plain['recording']} is too new, and this midwatch reads up to {VERSION}",
                where,
            )
        if "recording" not in plain:
            raise _refused("its first line is not the head of a recording", where)
        return _heads.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise _refused(f"its first line is not the head of a recording: {error}", where) from error


def _refused(reason: str, where: str) -> UsageError:
    return UsageError(
        f"not a recording: {reason}", where=where, remedy="make one with `midwatch export JOB -o FILE`"
    )


def _message(row: _Row, head: Head) -> Message:
    value: bytes | None = bytes(row.value) or None
    if row.raw is not None:
        value = base64.b64decode(row.raw, validate=True)
    topics: dict[Short, str] = {"events": head.events.topic, "incidents": head.incidents.topic}
    return Message(
        topic=topics.get(row.topic, row.topic),
        partition=row.partition,
        offset=row.offset,
        timestamp_ms=row.at_ms,
        now_ms=row.at_ms,
        key=None if row.key is None else row.key.encode(),
        value=value,
        headers=tuple((name, text.encode()) for name, text in row.headers.items()),
    )


def _is_one_line_of_json(value: bytes) -> bool:
    if b"\n" in value or b"\r" in value or value != value.strip():
        return False
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
