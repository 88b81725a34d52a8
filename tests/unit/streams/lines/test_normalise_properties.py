"""The laws of normalising: idempotent, blind to cuts, and every line is found where it stands in the file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.streams.lines import normalise as lines
from midwatch.streams.lines.normalise import LONGEST_LINE, locate, normalise, places
from midwatch.streams.records import Generation, Section

PIECES = st.sampled_from(
    [
        *(
            b"\r",
            b"\r\n",
            b"\n",
            b"\n\n",
            b"\x1b",
            b"\xc2\xa0",
            b"\x1b[31m",
            b"\x1b[0m",
            b"[0m",
            b"[36m",
            b"#033",
            b"^",
            "\ufffd".encode(),
            b"\x1b]0;t\x07",
            b"\0",
            b"\0\0",
        ),
        *(
            b" 10%|#  | 1/10 [00:01<00:09]",
            b"20%|",
            b"%|",
            b"]",
            b"[",
            b" ",
            b"loss: 2.5",
            b"\xff",
            "é█".encode(),
        ),
        *(
            b"AKIA",
            b"ABCDEFGHIJKLMNOP",
            b"hf_",
            b"sk-",
            b"x" * 30,
            b"Authorization: ",
            b"Bearer ",
            b"://",
            b"u:",
        ),
        *(
            b"p@",
            b"host",
            b"api_key=",
            b"password: ",
            b"***",
            b"'",
            b'"',
            b"wandb login ",
            b"0123456789" * 4,
            b"=",
        ),
        *(b"y" * (LONGEST_LINE // 2 - 20), b"z" * (LONGEST_LINE - 70)),
    ]
)
RAW = st.lists(st.one_of(PIECES, st.binary(max_size=6)), max_size=40).map(b"".join)


def section(raw: bytes, offset: int, number: int) -> tuple[Section, bytes]:
    result = normalise(raw)
    return (
        Section(
            path="a",
            generation=Generation(1, 2, "f"),
            size=len(result.text),
            lines=result.lines,
            anchors=result.placed(offset, number),
            end=offset + len(raw),
            read_before=0.0,
            read_at=1.0,
        ),
        result.text,
    )


@settings(max_examples=cases(400))
@given(RAW)
def test_normalising_again_changes_nothing(raw: bytes) -> None:
    once = normalise(raw)
    again = normalise(once.text)
    assert again.text == once.text
    assert len(again.anchors) == (1 if once.text else 0)


@settings(max_examples=cases(400))
@given(RAW)
def test_a_line_is_clean_and_never_longer_than_its_bytes(raw: bytes) -> None:
    result = normalise(raw)
    assert not set(b"\r\x1b\0") & set(result.text)
    assert all(len(line) <= LONGEST_LINE for line in result.text.split(b"\n"))
    assert len(result.text) <= len(raw) + 1
    assert result.raw_lines == raw.count(b"\n")


@settings(max_examples=cases(600))
@given(RAW, st.integers(0, 10**12), st.integers(1, 10**9))
def test_a_block_done_at_once_is_as_if_done_line_by_line(raw: bytes, offset: int, number: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_MANY", 0)
        at_once = normalise(raw, offset, number)
        patch.setattr(lines, "_MANY", len(raw) + 1)
        by_line = normalise(raw, offset, number)
    assert at_once == by_line
    assert at_once.anchors == normalise(raw).placed(offset, number)


@settings(max_examples=cases(300))
@given(RAW, st.data())
def test_cuts_between_raw_lines_change_neither_lines_nor_places(raw: bytes, data: st.DataObject) -> None:
    ends = [i + 1 for i, byte in enumerate(raw) if byte == 0x0A]
    cuts = sorted(data.draw(st.sets(st.sampled_from(ends)))) if ends else []
    whole, text = section(raw, 0, 1)
    expected = [locate(whole, text, i) for i in range(whole.lines)]

    joined, found, number, marks = b"", [], 1, []
    for start, stop in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        part, part_text = section(raw[start:stop], start, number)
        joined += part_text
        found += [locate(part, part_text, i) for i in range(part.lines)]
        number += raw.count(b"\n", start, stop)
        marks.append(part.end)
    assert joined == text
    assert [(p.offset, p.number) for p in found] == [(p.offset, p.number) for p in expected]
    # However it was cut, a mark between two chunks divides the same lines.
    for mark in marks:
        assert [p.end <= mark for p in found] == [p.end <= mark for p in expected]


@settings(max_examples=cases(400))
@given(RAW, st.integers(0, 10**12), st.integers(1, 10**9))
def test_each_line_is_found_at_its_bytes(raw: bytes, offset: int, number: int) -> None:
    part, text = section(raw, offset, number)
    found = [locate(part, text, i) for i in range(part.lines)]
    last = offset
    for place, line in zip(found, text.split(b"\n"), strict=False):
        at = place.offset - offset
        assert place.number == number + raw.count(b"\n", 0, at)
        source = raw[at:].split(b"\n")[0].split(b"\r")[0]
        assert normalise(source + b"\n").text == line + b"\n"
        assert last <= place.offset < place.end <= part.end
        last = place.end
    starts = [0, *(i + 1 for i, byte in enumerate(text[:-1]) if byte == 0x0A)] if text else []
    assert list(places(part, text, starts)) == found
