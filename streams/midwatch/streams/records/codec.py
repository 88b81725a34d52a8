"""Records to bytes and back.

A record is one JSON object with its kind, its version and its fields: `{"record": "beat", "v": 1, ...}`.
A chunk differs: the message's value is its text, and one header holds everything else. Readers accept older
versions and unknown fields. Bytes that are no record raise `MalformedRecord`. A newer major version or an
unknown kind raises `NewerRecord`, and the caller decides by topic what follows.
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
_FORWARDED: dict[str, type] = {
    "forwarded_outcome": r.Outcome,
    "forwarded_act": r.PersonAct,
    "forwarded_spec": r.SpecEvent,
    "forwarded_incident": r.Incident,
    "forwarded_finding": r.Finding,
}
_FORWARDED_NAMES = {cls: name for name, cls in _FORWARDED.items()}


class _Envelope(msgspec.Struct):
    record: str  # the kind; no record has a field of this name, but a finding has a field `kind`
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
"""The errors of a decoder on a stranger's bytes. The last one means that they are nested too deeply."""
_KIND_SHOWN = 60
_YOUNGER_FIELDS = ("resume_arguments", "environment_file", "follow", "replaces")


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
        MalformedRecord: no JSON, no record of midwatch, or a field of a wrong type or out of bounds.
        NewerRecord: a newer version or an unknown kind.
    """
    try:
        envelope = _envelope.decode(value)
    except UNREADABLE as error:
        raise MalformedRecord(f"not a record: {_reason(error)}") from error
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
        raise MalformedRecord(f"a broken {envelope.record!r} record: {_reason(error)}") from error
    return r.Forwarded(record) if envelope.record in _FORWARDED else record


def encode_log(record: r.Chunk | r.Heartbeat) -> Encoded:
    """A message of the topic `logs`."""
    if isinstance(record, r.Heartbeat):
        return Encoded(encode(record))
    table = _encoder.encode(_ChunkTable(VERSION, record.origin, record.sections))
    return Encoded(record.text, (("chunk", table),))


def decode_log(value: bytes, headers: Headers) -> r.Chunk | r.Heartbeat:
    """A message of the topic `logs`. Raises as `decode`, also if the section table does not fit the text."""
    table_bytes = dict(headers).get("chunk")
    if table_bytes is None:
        record = decode(value)
        if not isinstance(record, r.Heartbeat):
            raise MisdirectedRecord(f"a {type(record).__name__} does not belong in the topic `logs`")
        return record
    try:
        table = _table.decode(table_bytes)
    except UNREADABLE as error:
        raise MalformedRecord(f"a broken section table: {_reason(error)}") from error
    if table.v > VERSION:
        raise NewerRecord(f"a chunk of version {table.v}", remedy="upgrade this worker; the chunk is kept")
    check_sections(table.sections, value)
    return r.Chunk(table.origin, table.sections, value)


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def out_of_bounds(record: object) -> str:
    """Why a reader would refuse a record or a part of one, or "" if it would accept it."""
    try:
        msgspec.json.decode(_encoder.encode(record), type=type(record))
    except (*UNREADABLE, UnicodeEncodeError) as error:
        return _reason(error)
    return ""


def canonical(record: r.Command | r.Spec) -> bytes:
    """The bytes that a signature covers: every field but the signature, with sorted keys.

    A field that is younger than the first signatures is left out while it is empty. A record without it
    therefore keeps its bytes, its hash and its signature.
    """
    bare = asdict(replace(record, signature=""))
    for name in _YOUNGER_FIELDS:
        if name in bare and not bare[name]:
            del bare[name]
    return msgspec.json.encode(bare, order="sorted")


def content_hash(record: object) -> str:
    """SHA-256, in hex, of a dataclass's fields with sorted keys. Equal values give equal hashes."""
    body = asdict(record) if is_dataclass(record) and not isinstance(record, type) else record
    return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()


def state_to_bytes(state: object) -> bytes:
    """A state blob of an agent: JSON without a kind. The state class carries its own version field."""
    return _encoder.encode(state)


def state_from_bytes(value: bytes, cls: type[T]) -> T:
    """The inverse. It drops unknown fields and gives missing ones their defaults, so it reads older blobs."""
    return msgspec.json.decode(value, type=cls)


def plain_to_json(plain: object) -> str:
    """Plain values (dicts, lists, numbers, text) as one line of JSON for a person's tools."""
    return msgspec.json.encode(plain).decode()
