"""What becomes of the bytes of a log file, told in examples; test_lines_properties.py has the laws."""

from __future__ import annotations

import pytest

from midwatch.streams.lines.normalise import (
    LONGEST_LINE,
    LONGEST_RAW_LINE,
    locate,
    normalise,
    places,
    whole_lines,
)
from midwatch.streams.records import Generation, Section


def lines(raw: bytes) -> list[bytes]:
    result = normalise(raw)
    assert result.text.count(b"\n") == result.lines
    return result.text.split(b"\n")[:-1]


def section(raw: bytes, offset: int = 0, number: int = 1) -> tuple[Section, bytes]:
    result = normalise(raw)
    return (
        Section(
            path="rank0.log",
            generation=Generation(1, 2, "abc"),
            size=len(result.text),
            lines=result.lines,
            anchors=result.placed(offset, number),
            end=offset + len(raw),
            read_before=0.0,
            read_at=1.0,
        ),
        result.text,
    )


def bar(done: int) -> bytes:
    return b"train:  %d%%|%-10s| %d/100 [00:10<00:20, 3.1it/s, loss=2.5]" % (done, b"#" * (done // 10), done)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"one\ntwo\n", [b"one", b"two"]),
        (b"", []),
        (b"\n\n", [b"", b""]),
        (b"no newline at the end", [b"no newline at the end"]),
        (b"dos\r\nfile\r\n\r\n", [b"dos", b"file", b""]),
        (b"tty\r\r\n", [b"tty"]),
        (b"copying\rchecking\rdone\n", [b"copying", b"checking", b"done"]),
        (b"\x1b[1;31mERROR\x1b[0m red\n", [b"ERROR red"]),
        (b"\x1b]0;a title\x07text\x1b[K\n", [b"text"]),
        (b"\x1b]8;;http://x.y\x1b\\link\x1b]8;;\x1b\\\n", [b"link"]),
        (b"nul\0\0\0 bytes\0\n", [b"nul bytes"]),
        (b"\x1b\x1b[0m[0m\n", [b""]),
        (b"[36m(Toy pid=7)[0m one\n[3]m two\n", [b"(Toy pid=7) one", b"[3]m two"]),
        (b"broken \xff\xfe utf-8\n", [b"broken \xff\xfe utf-8"]),
    ],
)
def test_what_a_terminal_would_hide_is_out_and_all_else_stays(raw: bytes, expected: list[bytes]) -> None:
    assert lines(raw) == expected


def test_of_a_progress_bar_only_its_last_state_is_a_line() -> None:
    raw = b"start\n" + b"".join(b"\r" + bar(n) for n in range(0, 101, 5)) + b"\nend\n"
    assert lines(raw) == [b"start", bar(100), b"end"]


def test_a_run_of_bars_ends_where_something_else_is_printed() -> None:
    raw = b"\r".join([bar(1), bar(2), b"validation", bar(3), bar(4)]) + b"\n"
    assert lines(raw) == [bar(2), b"validation", bar(4)]


@pytest.mark.parametrize("glued", [b"RuntimeError: CUDA error", b"[rank3]: Traceback"])
def test_an_error_glued_to_a_progress_bar_is_never_dropped_with_it(glued: bytes) -> None:
    raw = b"\r".join([bar(1), bar(2) + glued, bar(3)]) + b"\n"
    assert bar(2) + glued in lines(raw)


def test_a_long_line_keeps_its_head_and_its_tail_and_says_what_is_missing() -> None:
    raw = b"head " + b"x" * 100_000 + b" CUDA out of memory\nnext\n"
    first, second = lines(raw)
    assert len(first) <= LONGEST_LINE
    assert first.startswith(b"head ")
    assert first.endswith(b" CUDA out of memory")
    assert b"bytes cut]" in first
    assert second == b"next"


def test_a_long_line_is_not_cut_within_a_character() -> None:
    first, *_ = lines("é".encode() * 20_000 + b"\n")
    assert "�" not in first.decode(errors="replace")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"key AKIAABCDEFGHIJKLMNOP used", b"key *** used"),
        (
            b"export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLE",
            b"export AWS_SECRET_ACCESS_KEY=***",
        ),
        (b"token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", b"token ***"),
        (b"{'HF_TOKEN': 'not-of-the-usual-form'}", b"{'HF_TOKEN': '***'}"),
        (b"OPENAI_API_KEY=sk-proj-abcdefghijklmnop_qrstuvwx-yz", b"OPENAI_API_KEY=***"),
        (b"wandb login 0123456789abcdef0123456789abcdef01234567", b"wandb login ***"),
        (b"WANDB_API_KEY: 0123456789abcdef0123456789abcdef01234567", b"WANDB_API_KEY: ***"),
        (b"> Authorization: Bearer abc.def-123", b"> Authorization: Bearer ***"),
        (b'"authorization": "Basic dXNlcjpwYXNz"', b'"authorization": "Basic ***"'),
        (b"redis://worker:s3cr3t@10.0.0.1:6379/0", b"redis://worker:***@10.0.0.1:6379/0"),
        (b"postgres://u:p@db/x", b"postgres://u:*@db/x"),
        (b"\x1b[31mAK\x1b[0mIAABCDEFGHIJKLMNOP", b"***"),
        (b"{'db_password': 'correcthorse', 'step': 3}", b"{'db_password': '***', 'step': 3}"),
    ],
)
def test_secrets_do_not_leave_the_node(raw: bytes, text: bytes) -> None:
    assert lines(raw + b"\n") == [text]


@pytest.mark.parametrize(
    "line",
    [
        b"iteration 10/100 | tokens per second: 12345678 | pad_token: 50256 | loss: 2.1",
        b"risk-adjusted disk-0 task-scheduler-with-a-very-long-name hf_model",
        b"listening on tcp://10.0.0.1:29500, see https://pytorch.org/docs/x#y@z",
        b"loading hf_hub weights, api_key=None, password=",
        b"Authorization failed",
    ],
)
def test_lines_that_only_look_like_secrets_stay_as_they_are(line: bytes) -> None:
    assert lines(line + b"\n") == [line]


def test_a_secret_cut_by_the_cap_does_not_leave_half_of_itself() -> None:
    secret = b"hf_" + b"Z" * 60
    for lead in range(LONGEST_LINE // 2 - 70, LONGEST_LINE // 2 + 5):
        (line,) = lines(b" " * lead + secret + b" " * 20_000 + b"\n")
        assert b"ZZZ" not in line


def test_every_line_is_found_again_in_the_file() -> None:
    raw = b"one\r\ntwo\n\x1b[1mthree\x1b[0m\n\r" + bar(1) + b"\r" + bar(2) + b"\nfive\na\rb\nseven\n"
    part, text = section(raw, offset=1000, number=50)
    found = [locate(part, text, i) for i in range(part.lines)]
    assert [p.number for p in found] == [50, 51, 52, 53, 54, 55, 55, 56]
    expected = [
        raw.index(x) for x in (b"one", b"two", b"\x1b[1mthree", bar(2), b"five", b"a\r", b"b\n", b"seven")
    ]
    assert [p.offset - 1000 for p in found] == expected
    starts = [p for p in range(len(text)) if p == 0 or text[p - 1 : p] == b"\n"]
    assert list(places(part, text, starts)) == found


def test_clean_lines_need_one_anchor_in_all() -> None:
    assert len(normalise(b"a line\n" * 1000).anchors) == 1


def test_a_line_that_does_not_exist_is_not_located() -> None:
    part, text = section(b"only\n")
    with pytest.raises(IndexError, match="line 1 of a section of 1"):
        locate(part, text, 1)


def test_a_raw_line_is_cut_where_it_would_fill_the_memory() -> None:
    assert whole_lines(b"a\nb") == 2
    assert whole_lines(b"abc") == 0
    assert whole_lines(b"\n" + b"x" * (LONGEST_RAW_LINE + 5)) == 1 + LONGEST_RAW_LINE
    assert len(lines(b"x" * (LONGEST_RAW_LINE + 5) + b"\n")) == 2
