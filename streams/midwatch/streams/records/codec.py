"""Records to bytes and back.

A record is one JSON object with its kind and version beside its fields (`{"record": "beat", "v": 1, ...}`),
except a chunk, whose text travels as it is in the message's value with everything else in one header.
Readers accept older versions and unknown fields. Bytes that are no record raise `MalformedRecord`; a newer
major version or an unknown kind raises `NewerRecord`: the caller decides by topic what that means.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any, TypeVar, cast

import msgspec

from midwatch.streams import records as r
from midwatch.streams.errors import MalformedRecord, MisdirectedRecord, NewerRecord
from midwatch.streams.records.section_table import check_sections

VERSION = 1

T = TypeVar("T")

Headers = tuple[tuple[str, bytes], ...]

_KINDS: dict[str, type] = {
    "hits": r.Hits,
    "beat": r.Heartbeat,
    "spec_event": r.SpecEvent,
    "scheduler": r.SchedulerFact,
    "outcome": r.Outcome,
    "act": r.PersonAct,
    "carry": r.Snapshot,
    "activation": r.Activation,
    "tick": r.Tick,
    "incident": r.Incident,
    "finding": r.Finding,
    "decision": r.Decision,
    "command": r.Command,
    "spec": r.Spec,
    "dead": r.DeadLetter,
    "bundle": r.RuleBundle,
    "in_force": r.InForce,
    "refused_rules": r.RefusedRules,
}
_NAMES = {cls: name for name, cls in _KINDS.items()}
_FORWARDED = {"forwarded_outcome": r.Outcome, "forwarded_act": r.PersonAct, "forwarded_spec": r.SpecEvent}
_FORWARDED_NAMES = {cls: name for name, cls in _FORWARDED.items()}


class _Envelope(msgspec.Struct):
    record: str  # the kind; no record has a field of this name (`kind` is one of a finding's own)
    v: int


class _ChunkTable(msgspec.Struct):
    v: int
    origin: r.Origin
    sections: tuple[r.Section, ...]


_envelope = msgspec.json.Decoder(_Envelope)
_table = msgspec.json.Decoder(_ChunkTable)
_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    name: msgspec.json.Decoder(cls) for name, cls in (_KINDS | _FORWARDED).items()
}
_encoder = msgspec.json.Encoder()

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder may raise on a stranger's bytes; the last one where they are nested too deeply."""
_KIND_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Encoded:
    """A message's value and headers."""

    value: bytes
    headers: Headers = ()


def encode(record: object) -> bytes:
    """A record as JSON with its kind and version. Deterministic: equal records give equal bytes."""
    if isinstance(record, r.Forwarded):
        name, body = _FORWARDED_NAMES[type(record.record)], record.record
    else:
        name, body = _NAMES[type(record)], cast(Any, record)
    head = b'{"record":"%s","v":%d' % (name.encode(), VERSION)
    rest = _encoder.encode(body)
    return head + (b"}" if rest == b"{}" else b"," + rest[1:])


def decode(value: bytes) -> Any:
    """The record in these bytes.

    Raises:
        MalformedRecord: not JSON, not an object of ours, or a field of the wrong type or out of its bounds.
        NewerRecord: a newer version or an unknown kind.
    """
    try:
        envelope = _envelope.decode(value)
    except UNREADABLE as error:
        raise MalformedRecord(f"not a record: {_said(error)}") from error
    if envelope.v > VERSION:
        raise NewerRecord(
            f"a {envelope.record[:_KIND_SHOWN]!r} record of version {envelope.v}; "
            f"this midwatch reads up to {VERSION}",
            remedy="upgrade this worker; the record is kept",
        )
    decoder = _decoders.get(envelope.record)
    if decoder is None:
        raise NewerRecord(
            f"a record of the unknown kind {envelope.record[:_KIND_SHOWN]!r}",
            remedy="upgrade this worker; the record is kept",
        )
    try:
        record = decoder.decode(value)
    except UNREADABLE as error:
        raise MalformedRecord(f"a broken {envelope.record!r} record: {_said(error)}") from error
    return r.Forwarded(record) if envelope.record in _FORWARDED else record


def encode_log(record: r.Chunk | r.Heartbeat) -> Encoded:
    """A message of the topic `logs`."""
    if isinstance(record, r.Heartbeat):
        return Encoded(encode(record))
    table = _encoder.encode(_ChunkTable(VERSION, record.origin, record.sections))
    return Encoded(record.text, (("chunk", table),))


def decode_log(value: bytes, headers: Headers) -> r.Chunk | r.Heartbeat:
    """A message of the topic `logs`. Raises as `decode`; also when the table does not fit the text."""
    table_bytes = dict(headers).get("chunk")
    if table_bytes is None:
        record = decode(value)
        if not isinstance(record, r.Heartbeat):
            raise MisdirectedRecord(f"a {type(record).__name__} has no place among the lines")
        return record
    try:
        table = _table.decode(table_bytes)
    except UNREADABLE as error:
        raise MalformedRecord(f"a broken section table: {_said(error)}") from error
    if table.v > VERSION:
        raise NewerRecord(f"a chunk of version {table.v}", remedy="upgrade this worker; the chunk is kept")
    check_sections(table.sections, value)
    return r.Chunk(table.origin, table.sections, value)


def _said(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def out_of_bounds(record: object) -> str:
    """What a reader would refuse about a record or a part of one; "" if it would take it."""
    try:
        msgspec.json.decode(_encoder.encode(record), type=type(record))
    except (*UNREADABLE, UnicodeEncodeError) as error:
        return _said(error)
    return ""


def canonical(record: r.Command | r.Spec) -> bytes:
    """The bytes a signature is made over: every field but the signature, keys sorted."""
    bare = asdict(replace(record, signature=""))
    return msgspec.json.encode(bare, order="sorted")


def content_hash(record: object) -> str:
    """SHA-256, in hex, of a dataclass's fields with sorted keys; equal values give equal hashes."""
    body = asdict(record) if is_dataclass(record) and not isinstance(record, type) else record
    return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()


def state_to_bytes(state: object) -> bytes:
    """A state blob of an agent: JSON, no kind; the state class carries its own version field."""
    return _encoder.encode(state)


def state_from_bytes(value: bytes, cls: type[T]) -> T:
    """The inverse; unknown fields are dropped, missing ones take their defaults, so older blobs are read."""
    return msgspec.json.decode(value, type=cls)


def plain_to_json(plain: object) -> str:
    """Plain values (dicts, lists, numbers, text) as one line of JSON for a person's tools."""
    return msgspec.json.encode(plain).decode()
