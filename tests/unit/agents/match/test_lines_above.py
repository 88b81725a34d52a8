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
