"""Lines that another shipper sends: one JSON object per message of `logs`, read through a mapping. Pure.

Which field holds what is the settings' to say; each shipper's own names are known here. The job's name must
come from a field that the shipper's configuration sets, never from one that the job's own output can write.

Such a line has no place in a file that could be trusted (rotation is not told), so its place is that of its
message: the path reads `train.log@midwatch.logs/3`, the line number is the message's offset there, and a
message that match reads twice counts once. What the shipper itself sends twice counts twice, as evidence
only. It gives no beats, so no stall can be found; `midwatch why` says so.
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
"""What the name of a foreign shipper's start begins with, in the origin of its lines."""

_OURS = b'{"record":'
_PLACE = 1 << 20  # bytes that a message may have: each has so much room of its own among the offsets
_MILLIS_FROM = 1e11  # an epoch above it counts milliseconds
_YEAR_10000 = 253_402_300_800.0


@dataclass(frozen=True, slots=True)
class Mapped:
    """Which field of the JSON object holds what; a dot leads into an inner object."""

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
"""Each shipper's own names of the fields; `job` is one that its configuration must add."""


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
    """How foreign lines are read; `cluster` and `user` complete a job that is named by its run alone."""

    shipper: str
    mapped: Mapped
    cluster: str
    user: str

    def chunk(self, message: Message) -> Chunk:
        """The line, or the few of them, as a chunk of its own.

        Raises:
            ForeignLine: no JSON object, or one without its line or its job.
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
                remedy=f"{remedy}; foreign.user is the user of jobs that are named by their run alone",
            ) from error


def reader(wanted: ForeignOptions, cluster: str) -> ForeignReader | None:
    """How the settings want foreign lines read; None if they want none."""
    own = SHIPPERS.get(wanted.shipper)
    if own is None:
        return None
    mapped = Mapped(
        line=wanted.line or own.line,
        job=wanted.job or own.job,
        node=wanted.node or own.node,
        path=wanted.path or own.path,
        time=wanted.time or own.time,
    )
    return ForeignReader(wanted.shipper, mapped, cluster, wanted.user)


def is_foreign(value: bytes, headers: Headers) -> bool:
    """Whether a message of `logs` is a JSON object that is none of ours."""
    ours = value.startswith(_OURS) or any(name == "chunk" for name, _ in headers)
    return not ours and value.lstrip(b" \t\r\n")[:1] == b"{"


def _object(value: bytes) -> Mapping[str, Any]:
    try:
        fields = msgspec.json.decode(value)
    except UNREADABLE as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ForeignLine(f"a foreign line that is no JSON: {said}", where="logs") from error
    if not isinstance(fields, dict):
        raise ForeignLine("a foreign line that is no JSON object", where="logs")
    return fields


def _found(fields: Mapping[str, Any], name: str) -> Any:
    """The value under a dotted name; a field that holds the dots in its own name comes first."""
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
    """A time as shippers write them: an epoch in seconds or milliseconds, or ISO 8601 with its zone."""
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
    """One for each line: all lines of a message have its number."""
    anchors, start = [], 0
    for index in range(text.count(b"\n")):
        anchors.append(Anchor(index, place + start, number))
        start = text.index(b"\n", start) + 1
    return anchors
