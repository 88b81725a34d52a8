"""Envelopes: a log collector's record around one printed line. The line alone is what rules search. Pure.

Docker's json-file, Fluent Bit, CloudWatch and Google's Cloud Logging write one JSON object for each line, and
others write logfmt. Such a record is opened only if its collector wrote it: all its fields are among those
that collectors add, and only one holds words. A record with a field of its program stays as it is: `step`,
`exc_info`, the level of its own logger. So does one whose level tells how to read the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from midwatch.streams.records.codec import UNREADABLE

_ADDED = frozenset(
    (
        "_p", "@timestamp", "@version", "agent", "attrs", "container_id", "container_name", "date",
        "docker", "ecs", "eventId", "file", "host", "hostname", "ingestionTime", "input", "insertId",
        "kubernetes", "labels", "logGroup", "logName", "logStream", "logStreamName", "logtag", "partial",
        "partial_id", "partial_last", "partial_message", "partial_ordinal", "path", "receiveTimestamp",
        "resource", "source", "source_type", "spanId", "stream", "tag", "tags", "time", "timestamp",
        "trace", "traceSampled",
    )
)  # fmt: skip
_OF_WORDS = ("log", "message")
_OF_GOOGLE = ("textPayload", "jsonPayload")
_IN_PAYLOAD = frozenset(("message", "levelname"))
_WARNS = re.compile(r"(?i)\A(?:warn|notice|debug|trace)")

_JSON = re.compile(rb'\A\{"[\w@]{1,24}": ?\S')
_WORDS = re.compile(rb'"(?:log|message|textPayload)": ?"')
_FIELD = (
    rb"(?:(?:level|lvl)=(?:info|unknown)"
    rb'|(?:ts|time|timestamp|stream|caller)=(?:"[^"\\]{0,80}"|[^\s"]{1,80}))'
)
_LOGFMT = re.compile(rb'\A(?:%b ){0,5}msg=("(?:[^"\\]|\\.)*")(?: %b){0,5}\s*\Z' % (_FIELD, _FIELD))
_AFTER_LINE_FEED, _AT_FIRST = b'\n{"', b'{"'
_MESSAGE = b'msg="'
_CUT = b" bytes cut]... "  # a line of ours that lost its middle is no whole record


def envelopes(raw: bytes) -> Iterator[int]:
    """A place in each raw line that may be an envelope. Fast searches tell that a log holds none."""
    if b'"' not in raw:
        return
    if raw.startswith(_AT_FIRST):
        yield 0
    for mark, beyond in ((_AFTER_LINE_FEED, 1), (_MESSAGE, 0)):
        at = raw.find(mark)
        while at >= 0:
            yield at + beyond
            at = raw.find(mark, at + len(mark))


def unwrapped(line: bytes) -> bytes | None:
    """The words of the program in an envelope, which may be several lines; None if the line is none.

    They are shorter than the line. Raises nothing.
    """
    if line[:1] == b"{":
        text = _of_json(line) if _JSON.match(line) and _WORDS.search(line) and _CUT not in line else None
    elif _MESSAGE in line:
        found = _LOGFMT.match(line)
        text = _of_string(found[1]) if found is not None else None
    else:
        return None
    try:
        return None if text is None else text.removesuffix("\n").encode()
    except UnicodeEncodeError:
        return None


def _of_json(line: bytes) -> str | None:
    try:
        record = msgspec.json.decode(line)
    except UNREADABLE:
        return None
    if not isinstance(record, dict):
        return None
    own = [key for key in record if key not in _ADDED and key != "severity"]
    text = record[own[0]] if len(own) == 1 else None
    if not own or own[0] in _OF_GOOGLE:
        text = _of_payload(text) if isinstance(text, dict) else text
        text = None if _WARNS.match(str(record.get("severity"))) else text
    elif own[0] not in _OF_WORDS or "severity" in record:
        return None
    return text if isinstance(text, str) else None


def _of_payload(payload: Mapping[str, Any]) -> Any:
    """The message that Google's agent took from a process, with no field of the process beside it."""
    if not payload.keys() <= _IN_PAYLOAD or _WARNS.match(str(payload.get("levelname"))):
        return None
    return payload.get("message")


def _of_string(quoted: bytes) -> str | None:
    try:
        text = msgspec.json.decode(quoted)
    except UNREADABLE:
        return None
    return text if isinstance(text, str) else None
