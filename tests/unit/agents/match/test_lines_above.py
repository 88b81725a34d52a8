"""The lines of one speaker above a line are those that a reader finds who looks at each line."""

from __future__ import annotations

from random import Random

import pytest

from midwatch.agents.match.lines_above import lines_above

PREFIXES = (b"[rank1]: ", b"[rank12]: ", b"(Trainer pid=7) ", b"[rank1]", b"")


def read_one_by_one(text: bytes, start: int, prefix: bytes) -> list[tuple[int, bytes]]:
    """Up to 120 lines with this prefix, as long as fewer than 400 others stand between."""
    found: list[tuple[int, bytes]] = []
    others, end = 0, start - 1
    while end > 0 and others < 400 and len(found) < 120:
        begin = text.rfind(b"\n", 0, end) + 1
        if text[begin:end].startswith(prefix):
            found.append((begin, text[begin + len(prefix) : end]))
        else:
            others += 1
        end = begin - 1
    return found


@pytest.mark.parametrize("seed", range(60))
def test_interleaved_ranks_give_the_lines_that_reading_one_by_one_gives(seed: int) -> None:
    random = Random(seed)
    speakers = random.choice((2, 5, 60, 450))
    prefixes = [*PREFIXES, *(b"[rank%d]: " % rank for rank in range(20, 20 + speakers))]
    lines: list[bytes] = []
    while len(lines) < 1500:
        speaker = random.choice(prefixes)
        lines += [speaker + b"x" * random.randrange(30) for _ in range(random.randrange(1, 13))]
    text = b"\n".join([*lines, b""])
    for _ in range(20):
        at = random.randrange(len(lines))
        start = sum(len(line) + 1 for line in lines[:at])
        prefix = random.choice([each for each in prefixes if each])
        assert list(lines_above(text, start, prefix)) == read_one_by_one(text, start, prefix)


@pytest.mark.parametrize(
    "prefix", ["3: ", "gpu-3: ", "trainer-3  | ", "[default3]:", "[1,3]<stderr>:", "(Toy pid=3) "]
)
def test_what_another_rank_prints_is_not_above(prefix: str) -> None:
    other = prefix.replace("3", "4")
    text = f"{prefix}a\n{other}b\n{prefix}c\n{other}d\n{prefix}e\n".encode()
    above = lines_above(text, text.index(prefix.encode() + b"e"), prefix.encode())
    assert [line for _, line in above] == [b"c", b"a"]


@pytest.mark.parametrize(
    "prefix", ["11:52:4{} ", "2026-03-02T11:52:40.00000000{}Z ", "[gpu 7 11:52:4{}] ", "step {} "]
)
def test_a_clock_or_a_count_that_goes_on_is_of_the_same_writer(prefix: str) -> None:
    text = "".join(f"{prefix.format(second)}{line}\n" for second, line in enumerate("abc")).encode()
    start = text.index(prefix.format(2).encode())
    above = lines_above(text, start, prefix.format(2).encode())
    assert [line for _, line in above] == [b"b", b"a"]


TRACEBACK = (
    b"Traceback (most recent call last):",
    b'  File "train.py", line 9, in <module>',
    b"    main()",
    b"KeyError: 'lr'",
)


@pytest.mark.parametrize("prefix", [b"", b"[rank1]: "])
def test_a_second_line_break_behind_each_line_parts_no_traceback(prefix: bytes) -> None:
    text = b"".join(prefix + line + b"\n" + prefix + b"\n" for line in (b"step 1", *TRACEBACK))
    above = [line for _, line in lines_above(text, text.index(prefix + TRACEBACK[-1]), prefix)]
    assert above == [*reversed(TRACEBACK[:-1]), b"step 1"]


@pytest.mark.parametrize(
    "lines",
    [
        (b"step 1", b"", b"During handling", b"", b"KeyError: 'lr'"),
        (b"step 1", b"", b"step 2", b"", b"step 3", b"", b"KeyError: 'lr'"),
        (*TRACEBACK, b"", b"During handling", b"", b"KeyError: 'lr'"),
    ],
)
def test_single_blank_lines_stay(lines: tuple[bytes, ...]) -> None:
    text = b"".join(line + b"\n" for line in lines)
    above = [line for _, line in lines_above(text, text.rindex(b"KeyError"), b"")]
    assert above == list(reversed(lines[:-1]))


@pytest.mark.parametrize("mark", ["[...]", "...", "(...)", "  [...]", "[\u2026]", "<...>"])
def test_a_mark_for_lines_left_out_is_no_line_of_a_traceback(mark: str) -> None:
    lines = (*TRACEBACK[:2], mark.encode(), *TRACEBACK[2:])
    text = b"".join(line + b"\n" for line in lines)
    above = [line for _, line in lines_above(text, text.rindex(b"KeyError"), b"")]
    assert above == list(reversed(TRACEBACK[:-1]))


def test_words_with_dots_are_a_line() -> None:
    text = b"loading ...\n[...] of 7\nKeyError: 'lr'\n"
    above = [line for _, line in lines_above(text, text.rindex(b"KeyError"), b"")]
    assert above == [b"[...] of 7", b"loading ..."]
