"""Envelopes: a log collector's record around one printed line. The line alone is what rules search. Pure.

Docker's json-file, Fluent Bit, CloudWatch and Google's Cloud Logging write one JSON object for each line, and
others write logfmt. Such a record is opened only if its collector wrote it: all its fields are among those
that collectors add, and only one holds words. A record with a field of its program stays as it is: `step`,
the level of its own logger. So does one whose level tells how to read the words. The log of a notebook at
Kaggle is a list of such records, so a bracket or a comma stands in front of each.

A logger's record of an error may hold a traceback of Python's in a string. It gives the record without the
traceback, and below it the traceback's lines, as a logger of text prints them. Rules read only such lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from ahocorasick_rs import BytesAhoCorasick

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

_JSON = re.compile(rb'\A\{"[\w@.]{1,24}": ?\S')
_WORDS = re.compile(rb'"(?:log|message|textPayload)": ?"')
_FIELD = (
    rb"(?:(?:level|lvl)=(?:info|unknown)"
    rb'|(?:ts|time|timestamp|stream|caller)=(?:"[^"\\]{0,80}"|[^\s"]{1,80}))'
)
_LOGFMT = re.compile(rb'\A(?:%b ){0,5}msg=("(?:[^"\\]|\\.)*")(?: %b){0,5}\s*\Z' % (_FIELD, _FIELD))
_ENTRY = b'{"stream_name":"std'
_OF_KAGGLE = re.compile(
    rb'\A[\[,]\{"stream_name":"std(?:out|err)","time":[\d.]{1,24},"data":("(?:[^"\\]|\\.)*")\}\]?\s*\Z'
)
_TRACEBACK = rb"Traceback (most recent call last):\n"
_WITH_TRACEBACK = re.compile(
    rb'"(?P<key>[\w@.]{1,24})": ?"(?P<above>(?:[^"\\]|\\.)*?)(?P<text>'
    rb'(?:(?:Exception Group |[+|] ?| ){0,8}Traceback \(most recent call last\):\\n)(?:[^"\\]|\\.)*)"'
)
_OF_ITS_LOGGER = frozenset((b"exc_info", b"exc_text"))
# Results of an evaluation hold tracebacks, too. Only a logger names a level.
_LEVEL = re.compile(
    rb'"(?:level(?:_?name)?|lvl|log\.level|(?P<of_stream>severity))": ?(?:\{[^{}]{0,80}?"name": ?)?"'
    rb"(?:(?P<loud>(?i:error|critical|fatal|panic|alert|emergency))"
    rb'|(?P<quiet>(?i:trace|debug|info|notice|success|warn(?:ing)?)))"'
)

_AFTER_LINE_FEED, _AT_FIRST = b'\n{"', b'{"'
_MESSAGE = b'msg="'
_any_mark = BytesAhoCorasick([_AFTER_LINE_FEED, _MESSAGE, _ENTRY]).find_matches_as_indexes
_CUT = b" bytes cut]... "  # a line of ours that lost its middle is no whole record


def envelopes(raw: bytes) -> Iterator[int]:
    """A place in each raw line that may be an envelope. Fast searches tell that a log holds none."""
    if b'"' not in raw:
        return
    if raw.startswith(_AT_FIRST):
        yield 0
    if not _any_mark(raw):
        return
    for mark, beyond in ((_AFTER_LINE_FEED, 1), (_MESSAGE, 0), (_ENTRY, 0)):
        at = raw.find(mark)
        while at >= 0:
            yield at + beyond
            at = raw.find(mark, at + len(mark))


def unwrapped(line: bytes) -> bytes | None:
    """The words of the program in an envelope, which may be several lines; None if the line is none.

    They are shorter than the line. Raises nothing.
    """
    if line[:1] == b"{":
        if _CUT in line or not _JSON.match(line):
            return None
        text = _of_json(line) if _WORDS.search(line) else None
        text = _of_logger(line) if text is None and _TRACEBACK in line else text
    elif _MESSAGE in line or _ENTRY in line:
        found = _LOGFMT.match(line) or _OF_KAGGLE.match(line)
        text = _of_string(found[1]) if found is not None else None
    else:
        return None
    try:
        return None if text is None else text.removesuffix("\n").encode()
    except UnicodeEncodeError:
        return None


def level_of_record(line: bytes) -> re.Match[bytes] | None:
    """The level, `loud` or `quiet`, that a logger's JSON record gives itself; None if it gives none.

    It may stand behind a message that names another one. A severity may be that of the whole stream, so it
    counts only beside a traceback.
    """
    if line[:2] != _AT_FIRST or not line.rstrip().endswith(b"}"):
        return None
    found = _LEVEL.search(line)
    return None if found is not None and found["of_stream"] and _TRACEBACK not in line else found


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


def _of_logger(line: bytes) -> str | None:
    """A logger's record of an error without its traceback, and the lines of that."""
    found = _WITH_TRACEBACK.search(line)
    level = level_of_record(line)
    if found is None or not (level["loud"] if level is not None else found["key"] in _OF_ITS_LOGGER):
        return None
    text = _of_string(b'"%b"' % found["text"])
    if text is None:
        return None
    record = line[: found.start("text")] + line[found.end("text") :]
    return record.decode(errors="surrogateescape") + "\n" + text


def _of_string(quoted: bytes) -> str | None:
    try:
        text = msgspec.json.decode(quoted)
    except UNREADABLE:
        return None
    return text if isinstance(text, str) else None
