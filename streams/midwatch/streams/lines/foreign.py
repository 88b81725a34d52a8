"""Lines of another shipper: one JSON object per message of `logs`, read by a mapping of fields. Pure.

The settings name the fields, and `SHIPPERS` holds each shipper's usual names. The job's name must come from
a field that the shipper's configuration sets, never from one that the job's output can write.

Such a line has no trusted place in a file, because the shipper reports no rotation. So it has the place of
its message. The path reads `train.log@midwatch.logs/3`, and the line number is the message's offset. A
message that match reads twice counts once. A line that the shipper sends twice counts twice, as evidence
only. The shipper sends no heartbeats, so midwatch finds no stall, and `midwatch why` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import msgspec

from midwatch.streams.errors import ConfigurationError, ForeignLine
from midwatch.streams.lines.normalise import normalise
from midwatch.streams.records import Anchor, Chunk, Generation, Origin, Section
from midwatch.streams.records.codec import UNREADABLE, Headers
from midwatch.streams.records.identity import job_name
from midwatch.streams.worker.fold import Message

PREFIX = "foreign:"
"""The start of `Origin.shipper` in a foreign shipper's lines."""

_OURS = b'{"record":'
_PLACE = 1 << 20  # bytes of room among the offsets for each message; no message is larger
_MILLIS_FROM = 1e11  # an epoch above it counts milliseconds
_YEAR_10000 = 253_402_300_800.0


@dataclass(frozen=True, slots=True)
class Mapped:
    """The names of the fields in the JSON object. A dot leads into an inner object."""

    line: str
    job: str
    node: str
    path: str
    time: str


SHIPPERS: Mapping[str, Mapped] = {
    "vector": Mapped("message", "job", "host", "file", "timestamp"),
    "fluent-bit": Mapped("log", "job", "hostname", "path", "@timestamp"),
    "filebeat": Mapped("message", "fields.job", "host.name", "log.file.path", "@timestamp"),
    "rsyslog": Mapped("msg", "$!.job", "hostname", "$!.metadata.filename", "timereported"),
}
"""Each shipper's usual names of the fields. Its configuration must add the one for `job`."""


class ForeignOptions(Protocol):
    """The section `foreign` of the settings."""

    @property
    def shipper(self) -> str: ...
    @property
    def line(self) -> str: ...
    @property
    def job(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def time(self) -> str: ...
    @property
    def user(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ForeignReader:
    """Reads foreign lines. `cluster` and `user` complete the name of a job that has only a run."""

    shipper: str
    mapped: Mapped
    cluster: str
    user: str

    def chunk(self, message: Message) -> Chunk:
        """The line or lines of one message as a chunk.

        Raises:
            ForeignLine: the message is no JSON object, or lacks its line or its job.
        """
        fields = _object(message.value or b"")
        mapped = self.mapped
        text = _text(fields, mapped.line)
        if text is None:
            raise ForeignLine(
                f"a JSON line of {self.shipper} without the field {mapped.line!r}",
                where="logs",
                remedy="foreign.line names the field that holds the log line",
            )
        lines = normalise(text.encode("utf-8", "replace"))
        place = message.offset * _PLACE
        at = _seconds(_found(fields, mapped.time), message.timestamp_ms / 1000)
        section = Section(
            path=f"{_text(fields, mapped.path) or self.shipper}@{message.topic}/{message.partition}",
            generation=Generation(0, message.partition, message.topic),
            size=len(lines.text),
            lines=lines.lines,
            anchors=tuple(_anchors(lines.text, place, message.offset)),
            end=place + max(len(lines.text), 1),
            read_before=at,
            read_at=at,
        )
        origin = Origin(
            job=self._job(_text(fields, mapped.job)),
            node=(_text(fields, mapped.node) or "unknown")[:255],
            nodes=0,
            incarnation="",
            boot_id="",
            shipper=f"{PREFIX}{self.shipper}",
        )
        return Chunk(origin, (section,) if lines.lines else (), lines.text)

    def _job(self, text: str | None) -> str:
        remedy = "let the shipper's configuration add it; foreign.job names the field"
        if not text:
            missing = f"a JSON line of {self.shipper} without a job in {self.mapped.job!r}"
            raise ForeignLine(missing, where="logs", remedy=remedy)
        try:
            return str(job_name(text, cluster=self.cluster, user=self.user))
        except ConfigurationError as error:
            raise ForeignLine(
                f"a JSON line of {self.shipper} with the job {text[:100]!r}: {error.what}",
                where="logs",
                remedy=f"{remedy}; foreign.user is the user of jobs whose name has only a run",
            ) from error


def reader(options: ForeignOptions, cluster: str) -> ForeignReader | None:
    """The reader of foreign lines under these settings, or None if they name no shipper."""
    usual = SHIPPERS.get(options.shipper)
    if usual is None:
        return None
    mapped = Mapped(
        line=options.line or usual.line,
        job=options.job or usual.job,
        node=options.node or usual.node,
        path=options.path or usual.path,
        time=options.time or usual.time,
    )
    return ForeignReader(options.shipper, mapped, cluster, options.user)


def is_foreign(value: bytes, headers: Headers) -> bool:
    """Whether a message of `logs` is a JSON object that midwatch did not write."""
    ours = value.startswith(_OURS) or any(name == "chunk" for name, _ in headers)
    return not ours and value.lstrip(b" \t\r\n")[:1] == b"{"


def _object(value: bytes) -> Mapping[str, Any]:
    try:
        fields = msgspec.json.decode(value)
    except UNREADABLE as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ForeignLine(f"a foreign line that is no JSON: {reason}", where="logs") from error
    if not isinstance(fields, dict):
        raise ForeignLine("a foreign line that is no JSON object", where="logs")
    return fields


def _found(fields: Mapping[str, Any], name: str) -> Any:
    """The value under a dotted name. A field with the dots in its own name comes first."""
    if name in fields:
        return fields[name]
    here: Any = fields
    for part in name.split("."):
        if not isinstance(here, dict):
            return None
        here = here.get(part)
    return here


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = _found(fields, name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return value if isinstance(value, str) else str(value)


def _seconds(value: Any, otherwise: float) -> float:
    """Seconds since 1970 from an epoch in seconds or milliseconds, or from ISO 8601 with its zone."""
    seconds = otherwise
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return otherwise
        if moment.tzinfo is not None:
            seconds = moment.timestamp()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value < _YEAR_10000 * 1000:
            return otherwise
        seconds = value / 1000 if value > _MILLIS_FROM else float(value)
    return seconds if 0 <= seconds < _YEAR_10000 else otherwise


def _anchors(text: bytes, place: int, number: int) -> list[Anchor]:
    """One anchor for each line. All lines of a message have its number."""
    anchors, start = [], 0
    for index in range(text.count(b"\n")):
        anchors.append(Anchor(index, place + start, number))
        start = text.index(b"\n", start) + 1
    return anchors
