"""A collector's record gives the line that it holds; a record of the program itself stays as it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.streams.lines.envelopes import envelopes, unwrapped
from midwatch.streams.lines.normalise import normalise

TIME = "2026-03-02T11:53:01.001Z"
ENVELOPES = [
    '{"log":"%s\\n","stream":"stderr","time":"2026-03-02T11:53:01.001Z"}',
    '{"log": "%s\\n", "stream": "stderr", "time": "2026-03-02T11:53:01.001Z"}',
    '{"date":1772452381.5,"log":"%s","kubernetes":{"pod_name":"toy-0"},"_p":"F"}',
    '{"message":"%s","stream":"stderr","@timestamp":"2026-03-02T11:53:01.001Z"}',
    '{"timestamp":1772452381000,"message":"%s","ingestionTime":1772452381500}',
    '{"insertId":"a1","textPayload":"%s","severity":"ERROR","timestamp":"2026-03-02T11:53:01Z"}',
    '{"insertId": "a1", "jsonPayload": {"message": "%s", "levelname": "INFO"}, "severity": "ERROR"}',
    'level=info ts=2026-03-02T11:53:01Z msg="%s"',
    'msg="%s" stream=stderr',
    '[{"stream_name":"stdout","time":0.911359041,"data":"%s\\n"}',
    ',{"stream_name":"stderr","time":14.5,"data":"%s\\n"}',
]
OWN = [
    '{"message": "toy", "step": 7, "loss": 2.1}',
    '{"level": "ERROR", "message": "toy", "time": "2026-03-02T11:53:01Z"}',
    '{"severity": "INFO", "message": "toy"}',
    '{"message": "toy", "exc_info": "Traceback (most recent call last):"}',
    '{"log": "toy", "message": "toys"}',
    '{"log": 7, "stream": "stderr"}',
    '{"log": "toy", "stream": "stderr"} of 3',
    '{"textPayload": "toy", "severity": "WARNING"}',
    '{"jsonPayload": {"message": "toy", "levelname": "WARNING"}, "severity": "ERROR"}',
    '{"jsonPayload": {"message": "toy", "step": 7}}',
    '{"insertId": "a1", "severity": "ERROR"}',
    '{"log": "toy ...[9 bytes cut]... ", "stream": "stderr"}',
    '{"log": "\\ud800"}',
    '{"stream": "stderr", "log": "unfinished',
    'level=warn msg="toy"',
    'level=error msg="toy"',
    'level=info msg="toy" err="gone"',
    'toy msg="toy"',
    ',{"stream_name":"stderr","time":14.5,"data":"toy","step":7}',
    'toys: {"stream_name":"stderr","time":14.5,"data":"toy"}',
    "{'log': 'toy'}",
]


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("words", ["ToyError: gone", '  File "toy.py", line 5, in main', "", "loss \\ é 2.1"])
def test_an_envelope_gives_its_words(envelope: str, words: str) -> None:
    quoted = json.dumps(words)[1:-1]
    raw = (envelope % quoted).encode() + b"\n"
    assert unwrapped(raw.removesuffix(b"\n")) == words.encode()
    assert list(envelopes(b"toy\n" + raw))
    assert normalise(raw).text == words.encode() + b"\n"


@pytest.mark.parametrize("line", OWN)
def test_a_record_of_the_program_and_a_warning_stay(line: str) -> None:
    raw = line.encode() + b"\n"
    assert unwrapped(line.encode()) is None
    assert normalise(raw).text == raw


@pytest.mark.parametrize(
    ("record", "head"),
    [
        (
            '{"level": "ERROR", "message": "toy", "exc_info": "%s"}',
            '{"level": "ERROR", "message": "toy", "exc_info": ""}',
        ),
        ('{"message": "toy\\n%s", "severity": "CRITICAL"}', '{"message": "toy\\n", "severity": "CRITICAL"}'),
        ('{"event":"toy","exc_info":"%s"}', '{"event":"toy","exc_info":""}'),
    ],
)
def test_a_record_of_an_error_gives_its_traceback_as_lines(record: str, head: str) -> None:
    lines = 'Traceback (most recent call last):\n  File "toy.py", line 5, in main\nToyError: "gone"'
    raw = (record % json.dumps(lines)[1:-1]).encode() + b"\n"
    assert normalise(raw).text.decode() == f"{head}\n{lines}\n"
    assert normalise(normalise(raw).text).text == normalise(raw).text


@pytest.mark.parametrize(
    "line",
    [
        '{"level": "WARNING", "exc_info": "Traceback (most recent call last):\\n  File\\nToyError"}',
        '{"task_id": 7, "error": "Traceback (most recent call last):\\n  File\\nToyError"}',
        '{"level": "ERROR", "exc_info": "Traceback (most recent call last):\\n ...[9 bytes cut]... gone"}',
        '{"level": "ERROR", "exc_info": "Traceback (most recent call last):\\n unfinished',
    ],
)
def test_a_record_that_may_be_no_error_keeps_its_traceback(line: str) -> None:
    assert unwrapped(line.encode()) is None


def test_the_lines_of_an_envelope_have_its_number() -> None:
    record = {
        "log": "Traceback (most recent call last):\n  File\nToyError: \x1b[31mgone\x1b[0m\n",
        "time": TIME,
    }
    raw = b"before\n" + json.dumps(record).encode() + b"\nbehind\n"
    found = normalise(raw, number=1)
    assert found.text == b"before\nTraceback (most recent call last):\n  File\nToyError: gone\nbehind\n"
    assert (found.lines, found.raw_lines) == (5, 3)
    numbers = [(anchor.index, anchor.number) for anchor in found.anchors]
    assert numbers == [(0, 1), (2, 2), (3, 2), (4, 3)]


def test_secrets_in_an_envelope_are_no_line() -> None:
    raw = json.dumps({"log": "api_key=" + "toy0" * 8 + "\n", "stream": "stderr"}).encode() + b"\n"
    assert b"toy0toy0" not in normalise(raw).text


_TEXT = st.text(st.sampled_from('a{}":,\\\n\r\x1b[31m%|1 =é'), max_size=20)


@given(st.lists(st.tuples(_TEXT, st.booleans()), max_size=4))
def test_envelopes_keep_the_laws_of_normalising(words: list[tuple[str, bool]]) -> None:
    raws = [
        (json.dumps({"log": text, "stream": "stderr"}) if wrapped else text.replace("\n", "")).encode()
        + b"\n"
        for text, wrapped in words
    ]
    whole = normalise(b"".join(raws))
    assert whole.text == b"".join(normalise(raw).text for raw in raws)
    assert normalise(whole.text).text == whole.text
    nested = [json.dumps({"log": raw.decode(), "stream": "stderr"}).encode() + b"\n" for raw in raws]
    assert normalise(b"".join(nested)).text == whole.text


@given(
    _TEXT, _TEXT, st.sampled_from(("ERROR", "WARNING", "")), st.sampled_from(("exc_info", "message", "stack"))
)
def test_records_of_loggers_keep_the_laws_of_normalising(
    above: str, below: str, level: str, key: str
) -> None:
    raised = f"{above}Traceback (most recent call last):\n{below}"
    record = {"level": level, "event": above, key: raised}
    raw = json.dumps(record).encode() + b"\n"
    found = normalise(raw)
    assert normalise(found.text).text == found.text
    assert normalise(b"toys\n" + raw + b"toys\n").text == b"toys\n" + found.text + b"toys\n"
    wrapped = json.dumps({"log": raw.decode(), "stream": "stderr"}).encode() + b"\n"
    assert normalise(wrapped).text == found.text
    ends = [anchor.offset for anchor in found.anchors]
    assert ends == sorted(ends)
    assert max(ends) < len(raw)


@pytest.mark.parametrize("mark", ['{"log":"toys"}', 'level=info msg="toys"', '[{"stream_name":"stdout"'])
def test_a_long_text_is_searched_for_the_same_marks(mark: str) -> None:
    plain = 'the "toy" rolls on\n' * 600
    assert list(envelopes(plain.encode())) == []
    assert len(list(envelopes(f"{plain}{mark}\n{plain}".encode()))) == 1
