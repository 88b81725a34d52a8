"""Literals that are rare in the very lines that a worker is given.

A literal is good where few lines hold it in vain, and that depends on the jobs: `ProcessGroup` stands in
every stack frame of one and never in another. What is chosen at first is weighed against text made up for
all; once enough lines have gone by, literals are weighed against these, and taken if they match them faster.
The hits are the same with any.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

from midwatch.rules.choice import Choice
from midwatch.rules.compiler import RuleSet, compile_rules
from midwatch.rules.model import Rule
from midwatch.rules.scanner import Clock
from midwatch.rules.triggers import FALSE_LINE_COST, TRUE_LINE_COST
from midwatch.rules.workloads import background

KEPT = 32
"""Chunks that are kept to be matched again."""
PIECE = 1 << 14
"""Bytes, about, that are read of each of them to choose by."""
FIRST_LOOK = 16 << 20
"""Bytes of text after which literals are chosen anew for the first time; later at four times as many."""
_AGAIN = 4
_SCATTER = 40_503  # coprime to any chunk's likely period: pieces come from all over a chunk
_TURNS = 6
_TICK_S = 1e-9
_SLOWER = 1.08
"""The most of a quarter of the chunks: above what two measurements of the same differ by."""


class PassingLines:
    """Some of the chunks that went by, spread over most of them. Changed by `take`."""

    __slots__ = ("_chunks", "_look", "_next", "_passed", "_taken")

    def __init__(self) -> None:
        self._chunks = [b""] * KEPT
        self._taken = self._passed = self._next = 0
        self._look = FIRST_LOOK

    def take(self, text: bytes) -> bool:
        """A chunk goes by; True if so much has by now that the literals should be chosen anew."""
        self._passed += len(text)
        if self._passed >= self._next:
            # The wider apart the more has gone by: an unusual hour does not stand for the days before it.
            self._next += max(FIRST_LOOK, self._passed) // KEPT
            self._chunks[self._taken % KEPT] = text
            self._taken += 1
        if self._passed < self._look:
            return False
        self._look = self._passed * _AGAIN
        return True

    def chunks(self) -> tuple[bytes, ...]:
        """What is kept, in no order. May be asked for by another thread."""
        return tuple(chunk for chunk in tuple(self._chunks) if chunk)


def choice_for(rules: Sequence[Rule], chunks: Sequence[bytes]) -> Choice:
    """What is chosen for these rules where such lines go by. Takes seconds; raises as `compile_rules`."""
    return _chosen(_having_learned(rules, chunks, FALSE_LINE_COST))


def better_choice(rules: Sequence[Rule], known: Choice, chunks: Sequence[bytes], clock: Clock) -> Choice:
    """`known`, or of two choices made for these chunks the one with which they are matched fastest in the
    mean, if the quarter of them that gains least is not much slower.

    The two differ in what a line looked at in vain weighs: how much it costs beside one more literal is the
    machine's business. The mean is of ratios: chunks in which every line is a hit take the longest with any
    literals, and would outvote the others. Takes seconds; raises as `compile_rules`. The clock counts the
    seconds of this thread's work.
    """
    if not chunks:
        return known
    learned = [_having_learned(rules, chunks, cost) for cost in (FALSE_LINE_COST, TRUE_LINE_COST)]
    sets = (compile_rules(rules, choice=known), *learned)
    turns = [[[_seconds(each, chunk, clock) for each in sets] for chunk in chunks] for _ in range(_TURNS)]
    best = fastest(turns)
    return _chosen(learned[best - 1]) if best else known


def fastest(turns: Sequence[Sequence[Sequence[float]]]) -> int:
    """Which of several ways is to be taken in place of the first, by the seconds of each turn, chunk and way.

    Which chunks gain least is told by every other turn, and how much they lose by the rest: of noise alone
    the worst quarter is a tenth slower by the very measurements that made it the worst.
    """
    halves = [
        [[min(seconds) for seconds in zip(*chunk, strict=True)] for chunk in zip(*some, strict=True)]
        for some in (turns[::2], turns[1::2])
    ]
    best, mean = 0, 1.0
    for way in range(1, len(turns[0][0])):
        pairs = sorted(zip(*([each[way] / each[0] for each in half] for half in halves), strict=True))
        least_gain = [second for _, second in pairs[-max(1, len(pairs) // 4) :]]
        of_all = geometric_mean([ratio for pair in pairs for ratio in pair])
        if of_all < mean and geometric_mean(least_gain) < _SLOWER:
            best, mean = way, of_all
    return best


def _having_learned(rules: Sequence[Rule], chunks: Sequence[bytes], line_cost: float) -> RuleSet:
    pieces = b"".join(_piece(chunk, number * _SCATTER) for number, chunk in enumerate(chunks))
    return compile_rules(rules, background=background() + pieces, line_cost=line_cost)


def _piece(text: bytes, place: int) -> bytes:
    """Whole lines, from the place on."""
    start = text.rfind(b"\n", 0, place % max(1, len(text) - PIECE)) + 1
    return text[start : text.find(b"\n", start + PIECE) + 1 or len(text)]


def _seconds(rule_set: RuleSet, chunk: bytes, clock: Clock) -> float:
    begin = clock()
    rule_set.match_chunk(chunk)
    return max(clock() - begin, _TICK_S)


def _chosen(rule_set: RuleSet) -> Choice:
    if rule_set.choice is None:
        raise AssertionError("a scan was asked for")
    return rule_set.choice
