"""Contiguity: a worker may apply only the records of a batch at the next contiguous offsets.

Faust may seek twice within one generation. Then one batch holds the same offset twice, or older offsets
again. A filter on "above the stored offset" would count some twice; only "the next offset" is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from midwatch.streams.errors import MidwatchError


class HoleInLog(MidwatchError):
    """Records of a partition are missing, and retention does not explain it."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The accepted part of a batch. `taken` are indexes into the batch, in order.

    `hole` is the index of the first record before which records are missing, or None. No record behind a
    hole is taken.
    """

    taken: tuple[int, ...]
    replayed: int
    hole: int | None


def accept(expected: int, offsets: Sequence[int], log_start: int = 0) -> Accepted:
    """Accept or refuse the records of one partition in a batch, in the order of arrival.

    `expected` is the offset that must come next. Only retention may make a hole. So an offset above the
    expected one is right if it is not above the log's current start: all offsets between are deleted. Ask
    the broker for `log_start` when there is a hole, and call again.
    """
    upcoming, replayed = expected, 0
    taken: list[int] = []
    for index, offset in enumerate(offsets):
        if offset < upcoming:
            replayed += 1
        elif offset == upcoming or offset <= log_start:
            taken.append(index)
            upcoming = offset + 1
        else:
            return Accepted(tuple(taken), replayed, index)
    return Accepted(tuple(taken), replayed, None)
