"""Who speaks on a line, and when a traceback is complete."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.streams.lines.blocks import LONGEST_BLOCK, Unfinished, claimed_rank, finished, follow
from midwatch.streams.lines.normalise import normalise
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
        (b"x3006c0s13b1n0.hsn.toys.example.gov 3: boom", 3),
        (b"(Trainer pid=77) boom", None),
        (b"step 12: loss 3", None),
        (b"said [rank3]: in the middle", None),
        (b"  3: step 4", 3),
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
    assert [line.text for line in block.lines][::2] == [HEAD.rstrip(), b"  File x"]
    assert [line.number for line in block.lines] == [1, 2, 3]
    assert block.foreign == 0


def test_a_traceback_without_an_end_is_not_awaited_for_ever() -> None:
    assert after(b"iteration 3 of 100\n" * 40, after(HEAD)) == ()


SPEAKERS = (
    b"", b"[rank3]: ", b"[rank3]:", b"[rank3]", b"[rank3] ", b"[default0]: ", b"3: ", b"12: ",
    b"[1,2]<stdout>:", b"(Trainer pid=7) ", b"(Trainer pid=7) 3: ", b"3: [rank3]: ", b"[rank4]: ",
)  # fmt: skip
SAID = (
    HEAD.rstrip(), b"Original " + HEAD.rstrip(), b"  File x, line 3", b"\t  go()", b" ", b"   ", b"",
    b"KeyError: 3", b"toy.Error", b"step 3 of 4", b"12",
    b"[2026-11-20 07:32:05] step 3", b"(a) b", b"Traceback (most",
)  # fmt: skip
PREFIX = re.compile(
    rb"(?:\[(?:rank|default)\d+\]:? ?|\[\d+,\d+\]<stdout>:|\d{1,6}: |\([^()]{0,80}pid=\d+[^()]{0,80}\) )*"
)


def line_by_line(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Where each block's last line begins, and the block, told of one line after the other."""
    blocks: dict[bytes, list[bytes]] = {}
    foreign: dict[bytes, int] = {}
    at = 0
    for line in text.split(b"\n"):
        match = PREFIX.match(line)
        speaker = match[0] if match else b""
        if speaker.endswith(b"]: ") and speaker not in blocks and HEAD.rstrip() not in line:
            speaker = speaker[:-1] if speaker[:-1] in blocks else speaker
        said = line[len(speaker) :]
        if said.startswith((HEAD.rstrip(), b"Original " + HEAD.rstrip())):
            blocks[speaker], foreign[speaker] = [said], 0
        elif speaker in blocks and said[:1].isspace():
            blocks[speaker].append(said)
            foreign[speaker] = 0
        elif speaker in blocks and re.match(rb"[A-Za-z_][\w.]*(?:: .*|:?)\Z", said):
            yield at, b"\n".join([*blocks.pop(speaker), said])
        elif speaker in blocks:
            foreign[speaker] += 1
            if foreign[speaker] > 16:
                del blocks[speaker]
        at += len(line) + 1


R = b"[rank4]: "


def _logs(speakers: set[bytes]) -> st.SearchStrategy[list[tuple[bytes, bytes]]]:
    return st.lists(st.tuples(st.sampled_from(sorted(speakers)), st.sampled_from(SAID)), max_size=40)


@given(st.sets(st.sampled_from(SPEAKERS), min_size=1, max_size=3).flatmap(_logs))
@example(
    [(b"[rank3]:", HEAD.rstrip()), (b"[rank3]:", b"\tx"), (b"[rank3]:", b" y"), (b"[rank3]:", b"KeyError")]
)
@example([(R, HEAD.rstrip()), (R, b"  File x"), (b"", b"  of nobody"), (R, b"KeyError")])
@example([(R, HEAD.rstrip()), *[(R, b"step 3 of 4")] * 16, (R, b"KeyError")])
@example([(R, HEAD.rstrip()), *[(R, b"step 3 of 4")] * 17, (R, b"KeyError")])
@settings(max_examples=cases(600))
def test_frames_taken_in_runs_are_those_of_their_speaker(lines: list[tuple[bytes, bytes]]) -> None:
    text = b"\n".join(speaker + said for speaker, said in lines)
    assert len(lines) <= LONGEST_BLOCK
    assert [(block.start, block.text) for block in finished(text)] == list(line_by_line(text))


def test_the_line_of_a_padded_label_is_in_no_other_tasks_block_wherever_it_stands() -> None:
    lines = [HEAD, b"  File x\n", b"  8: step 4\n", b"    x()\n", b"ToyError: gone\n"]
    (block,) = finished(b"".join(lines))
    assert block.text == HEAD + b"  File x\n    x()\nToyError: gone"
    (alone,) = finished(b"".join([lines[0], *lines[2:]]))
    assert alone.text == HEAD + b"    x()\nToyError: gone"
