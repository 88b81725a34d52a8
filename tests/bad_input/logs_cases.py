"""What may arrive on `logs` and is no chunk and no beat of ours."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from bad_input.case import JOB, OTHER, Case
from midwatch.streams.records import Anchor, Chunk, Generation, Heartbeat, Origin, Section, codec
from midwatch.streams.records.identity import message_key

ORIGIN = Origin(JOB, "n0", 1, "local:1:1", "boot", "shipper")
TEXT = b"fine\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
SECTION = Section(
    path="/logs/a.log",
    generation=Generation(1, 2, "f"),
    size=len(TEXT),
    lines=2,
    anchors=(Anchor(0, 0, 1),),
    end=len(TEXT),
    read_before=0.0,
    read_at=1_795_000_000.0,
)
BEAT = Heartbeat(ORIGIN, 7, 1_795_000_000.0, 100.0, 5.0, True, 0)
KEY = message_key(JOB, "n0")


def chunk(text: bytes = TEXT, *, origin: Origin = ORIGIN, **section: Any) -> codec.Encoded:
    """A chunk of one section; a good one, but for what is named."""
    return codec.encode_log(Chunk(origin, (replace(SECTION, **section),), text))


def table(change: Any) -> codec.Encoded:
    """A good chunk whose table was changed as JSON: what no encoder of ours would write."""
    good = chunk()
    told = json.loads(good.headers[0][1])
    change(told)
    return codec.Encoded(good.value, (("chunk", json.dumps(told).encode()),))


def beat(change: Any) -> bytes:
    told = json.loads(codec.encode(BEAT))
    change(told)
    return json.dumps(told).encode()


def _case(name: str, said: str, made: codec.Encoded | bytes | None, kind: str = "malformed") -> Case:
    if isinstance(made, codec.Encoded):
        return Case(name, said, kind, value=made.value, key=KEY, headers=made.headers)
    return Case(name, said, kind, value=made, key=KEY)


def _section(**fields: Any) -> codec.Encoded:
    return table(lambda told: told["sections"][0].update(fields))


CASES = (
    _case("a tombstone", "a record without a value", None),
    _case("an empty message", "not a record", b""),
    _case("plain text without a table", "not a record", b"step 5 loss 2.0\n"),
    _case("bytes that are no text", "not a record", b"\x00\xff\xfe\x00"),
    _case(
        "a foreign JSON line, and no setting for it", "set foreign.shipper", b'{"message": "x"}', "foreign"
    ),
    _case(
        "JSON nested 100,000 deep", "nested too deeply", b'{"record":"beat","v":1,"more":' + b"[" * 100_000
    ),
    _case(
        "a record of another topic",
        "does not belong in the topic",
        b'{"record":"tick","v":1,"due_ms":0}',
        "misdirected",
    ),
    _case("an unknown kind", "unknown kind 'dream'", b'{"record":"dream","v":1}', "newer"),
    _case("a beat of a newer version", "version 9", beat(lambda told: told.update(v=9)), "newer"),
    _case("a chunk of a newer version", "version 9", table(lambda told: told.update(v=9)), "newer"),
    _case(
        "a truncated section table",
        "broken section table",
        codec.Encoded(TEXT, (("chunk", chunk().headers[0][1][:-20]),)),
    ),
    _case("a table that does not add up", "does not add up", _section(size=len(TEXT) - 1)),
    _case("a table with too many lines", "it claims 9 lines, its text has 2", _section(lines=9)),
    _case("text that ends within a line", "ends within a line", chunk(TEXT[:-1], size=len(TEXT) - 1)),
    _case("a section without an anchor", "no anchor", _section(anchors=[])),
    _case(
        "anchors out of order",
        "not in order",
        _section(anchors=[{"index": i, "offset": 0, "number": 1} for i in (0, 1, 1)]),
    ),
    _case(
        "an anchor behind the last line",
        "after its last line",
        _section(anchors=[{"index": i, "offset": 0, "number": 1} for i in (0, 9)]),
    ),
    _case("more context than lines", "3 lines of context", _section(context=3)),
    _case("a negative offset", "`int` >= 0 - at `$.sections[0].end`", _section(end=-1)),
    _case("an offset of a thousand digits", "`int` <= 9007199254740992", _section(end=10**1000)),
    _case("a size below nothing", "`int` >= 0", _section(size=-5)),
    _case("a clock of the year 40,000", "$.sections[0].read_at", _section(read_at=1.2e12)),
    _case("a clock that is no number", "`float`", _section(read_at="NaN")),
    _case("a beat without its sequence", "sequence", beat(lambda told: told.pop("sequence"))),
    _case(
        "a beat that promises the next in an age", "interval", beat(lambda told: told.update(interval=1e300))
    ),
    _case("a beat of -3 nodes", "nodes", beat(lambda told: told["origin"].update(nodes=-3))),
    _case(
        "a job whose name would clear a terminal",
        "origin.job",
        beat(lambda told: told["origin"].update(job="local:ada/\x1b[2J")),
    ),
    _case(
        "a shipper that claims another job",
        f"a message of {OTHER}",
        chunk(origin=replace(ORIGIN, job=OTHER)),
        "misdirected",
    ),
    Case(
        "a message without a key",
        "under the key b''",
        "misdirected",
        value=chunk().value,
        headers=chunk().headers,
    ),
)
