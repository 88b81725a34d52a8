"""Who speaks on a line, and when a traceback is complete."""

from __future__ import annotations

import pytest

from midwatch.streams.blocks import Unfinished, claimed_rank, follow
from midwatch.streams.lines import normalise
from midwatch.streams.records import Generation, Section


def after(text: bytes, before: Unfinished = ()) -> Unfinished:
    lines = normalise(text)
    section = Section(
        "a", Generation(1, 1, "f"), len(text), lines.lines, lines.placed(0, 1), len(text), 0.0, 1.0
    )
    return follow(before, section, lines.text)


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        (b"[rank3]: RuntimeError", 3),
        (b"[rank3]:[E1120 07:32:05 watchdog] x", 3),
        (b"[default7]: step 3", 7),
        (b"12: loss 3", 12),
        (b"[1,5]<stderr>:boom", 5),
        (b"(Trainer pid=77, ip=10.0.0.1) 2: boom", 2),
        (b"(Trainer pid=77) boom", None),
        (b"step 12: loss 3", None),
        (b"said [rank3]: in the middle", None),
    ],
)
def test_a_launchers_prefix_claims_a_rank(line: bytes, rank: int | None) -> None:
    assert claimed_rank(line) == rank


HEAD = b"Traceback (most recent call last):\n"


@pytest.mark.parametrize(
    "end",
    [
        b"ValueError: no\n",
        b"torch.cuda.OutOfMemoryError: CUDA out of memory.\n",
        b"KeyboardInterrupt\n",
        b"my.Error:\n",
    ],
)
def test_a_traceback_ends_with_its_exception(end: bytes) -> None:
    assert len(after(HEAD + b"  File x\n")[0].lines) == 2
    assert after(HEAD + b"  File x\n" + end) == ()
    assert after(end, after(HEAD + b"  File x\n")) == ()


def test_a_log_line_in_between_does_not_end_it() -> None:
    (block,) = after(HEAD + b"[2026-11-20 07:32:05] iteration 3\n  File x\n")
    assert [line.text for line in block.lines] == [HEAD.rstrip(), b"  File x"]
    assert [line.number for line in block.lines] == [1, 3]


def test_a_traceback_without_an_end_is_not_awaited_for_ever() -> None:
    assert after(b"iteration 3 of 100\n" * 40, after(HEAD)) == ()
