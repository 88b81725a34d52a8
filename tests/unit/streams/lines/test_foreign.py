"""Lines of Vector, Fluent Bit, Filebeat and rsyslog, as each of them writes them."""

from __future__ import annotations

import json

import pytest

from midwatch.streams.errors import ForeignLine
from midwatch.streams.lines.foreign import ForeignReader, is_foreign, reader
from midwatch.streams.records import Chunk
from midwatch.streams.settings.schema import ForeignSettings
from midwatch.streams.worker.fold import Message

AT_MS = 1_795_000_000_000
OOM = "torch.OutOfMemoryError: CUDA out of memory."
AS_WRITTEN: dict[str, dict[str, object]] = {
    "vector": {
        "file": "/logs/train.log", "host": "gpu07", "message": OOM, "job": "ada/llm",
        "source_type": "file", "timestamp": "2026-11-18T09:06:35.250Z",
    },
    "fluent-bit": {
        "@timestamp": 1794992795.25, "log": OOM, "hostname": "gpu07", "path": "/logs/train.log",
        "job": "ada/llm",
    },
    "filebeat": {
        "@timestamp": "2026-11-18T09:06:35.250Z", "@metadata": {"beat": "filebeat"}, "message": OOM,
        "log": {"file": {"path": "/logs/train.log"}, "offset": 77}, "host": {"name": "gpu07"},
        "fields": {"job": "ada/llm"},
    },
    "rsyslog": {
        "msg": OOM, "hostname": "gpu07", "timereported": "2026-11-18T10:06:35.250+01:00",
        "$!": {"metadata": {"filename": "/logs/train.log", "fileoffset": "77"}, "job": "ada/llm"},
    },
}  # fmt: skip


def _reader(shipper: str, **fields: str) -> ForeignReader:
    made = reader(ForeignSettings(shipper=shipper, **fields), "night")  # type: ignore[arg-type]  # fields are given by their names
    assert made is not None
    return made


def _message(value: object, offset: int = 12) -> Message:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Message("midwatch.logs", 3, offset, AT_MS, AT_MS, None, body)


def _named(value: dict[str, object], name: str) -> dict[str, object]:
    """The same line with the job's whole name."""
    return json.loads(json.dumps(value).replace('"ada/llm"', json.dumps(name)))  # type: ignore[no-any-return]  # what went in comes out


@pytest.mark.parametrize("shipper", AS_WRITTEN)
def test_a_line_of_each_shipper_is_read_with_its_job_node_file_and_time(shipper: str) -> None:
    chunk = _reader(shipper).chunk(_message(_named(AS_WRITTEN[shipper], "night:ada/llm")))
    (section,) = chunk.sections
    assert chunk.text == OOM.encode() + b"\n"
    assert (chunk.origin.job, chunk.origin.node) == ("night:ada/llm", "gpu07")
    assert section.path == "/logs/train.log@midwatch.logs/3"
    assert section.anchors[0].number == 12
    assert section.read_at == 1794992795.25


def test_a_run_alone_is_completed_by_the_settings() -> None:
    chunk = _reader("vector", user="ada").chunk(_message({"message": "x", "job": "llm"}))
    assert chunk.origin.job == "night:ada/llm"


def test_fields_may_have_other_names_even_with_dots_in_them() -> None:
    made = _reader("vector", line="log.text", job="labels.run", user="ada")
    assert made.chunk(_message({"log.text": "x", "labels": {"run": "llm"}})).text == b"x\n"


def test_places_grow_with_the_messages_so_that_one_read_twice_counts_once() -> None:
    def ends(offset: int, text: str) -> tuple[int, int]:
        chunk: Chunk = _reader("vector", user="ada").chunk(
            _message({"message": text, "job": "llm"}, offset=offset)
        )
        return chunk.sections[0].anchors[0].offset, chunk.sections[0].end

    first, second = ends(7, "a\nb\nc"), ends(8, "d")
    assert first == ends(7, "a\nb\nc")
    assert first[0] < first[1] <= second[0] < second[1]


@pytest.mark.parametrize("time", [None, "yesterday", 1e300, -5, True, "2026-11-18T09:06:35", {"a": 1}])
def test_a_time_that_is_none_is_the_append_time(time: object) -> None:
    chunk = _reader("vector", user="ada").chunk(_message({"message": "x", "job": "llm", "timestamp": time}))
    assert chunk.sections[0].read_at == AT_MS / 1000


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({"job": "night:ada/llm"}, "without the field 'message'"),
        ({"message": "x"}, "without a job in 'job'"),
        ({"message": "x", "job": "llm"}, "cannot be part of a job's name"),
        ({"message": "x", "job": "a/b\nc"}, "cannot be part of a job's name"),
        (b'{"message": "x"', "no JSON"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_lacks_what_is_asked_for_says_what(value: object, word: str) -> None:
    with pytest.raises(ForeignLine, match=word):
        _reader("vector").chunk(_message(value))


def test_our_own_messages_are_never_taken_for_foreign_ones() -> None:
    assert not is_foreign(b'{"record":"beat","v":1}', ())
    assert not is_foreign(b'{"a": 1}\n', (("chunk", b"{}"),))
    assert not is_foreign(b"out of memory", ())
    assert is_foreign(b' {"message": "x"}', ())
    assert reader(ForeignSettings(), "night") is None
