"""The section of `bench/results/diagnosis.md` on the chance that a restart passes, and its plot. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from midwatch.agents.replay.scoring import Ratio

TITLE = "## The chance that a restart passes"
BINS = (0.0, 0.05, 0.2, 0.5, 0.8, 1.0)

_ABOUT = """
Written by `make fit-diagnosis LABELS=FOLDER`. Each verdict carries the share of labelled ends like it that
were judged worth a restart, smoothed. *Like it*: of the same type, with the same claim about transience,
and also after (or before) a first step. Where there are few, wider classes count too, as
[verdicts](../../docs/verdicts.md) lists them. A label's own action counts. Actions that are as right do not;
*on the border* tells how many labels have one.

The Brier score is the mean of (chance - label)². Lower is better; a coin has 0.25. *The usual share* gives
every end the share of all counted ends. The counts of the first 106 and of batch 1 are tested on batches 2
and 3, which they do not hold. But the rules had learned from these batches too, and the order of the classes
was chosen by these scores, so the tables are not blind. The rules and classes as they were before anybody
read batches 2 and 3 had there a Brier score of 0.092 (101 ends; 0.041 of the 66 clear labels; the usual share
0.253). And a label is what a reader judged: nobody started these jobs again.
"""


@dataclass(frozen=True, slots=True)
class Scored:
    """The chance of one end, and what its label says."""

    share: float
    worth: bool
    on_the_border: bool = False


@dataclass(frozen=True, slots=True)
class ChanceTest:
    """Chances of ends that the counts behind them do not hold. `usual`: the share of the counted ends."""

    name: str
    scored: Sequence[Scored]
    usual: float

    @property
    def brier(self) -> float:
        """The mean of the squared errors."""
        return brier(self.scored)

    @property
    def clear_brier(self) -> float:
        """The same of the ends whose label takes no other action."""
        return brier([each for each in self.scored if not each.on_the_border])

    @property
    def usual_brier(self) -> float:
        """The same where each end has the usual share."""
        return brier([Scored(self.usual, each.worth) for each in self.scored])


def brier(scored: Sequence[Scored]) -> float:
    """The mean of the squared errors; 0 without an end."""
    return sum((each.share - each.worth) ** 2 for each in scored) / max(1, len(scored))


@dataclass(frozen=True, slots=True)
class Bin:
    """Ends with a chance from `low` to below `high` (the last bin: up to 1)."""

    low: float
    high: float
    mean: float
    seen: Ratio


def bins(scored: Sequence[Scored]) -> list[Bin]:
    """The ends by their chance; a bin without an end is left out."""
    found = []
    for low, high in pairwise(BINS):
        within = [each for each in scored if low <= each.share < high or each.share == high == 1.0]
        if within:
            mean = sum(each.share for each in within) / len(within)
            found.append(Bin(low, high, mean, Ratio(sum(each.worth for each in within), len(within))))
    return found


def section(tests: Sequence[ChanceTest], more: str = "") -> str:
    """The whole section."""
    lines = [TITLE, _ABOUT, *_scores(tests), ""]
    lines += ["![chance and label, with the number of ends and 95 % intervals](chance.svg)", ""]
    for test in tests[-2:]:
        lines += [f"{test.name[0].upper()}{test.name[1:]}:", "", *_reliability(test.scored), ""]
    return "\n".join([*lines, more]).rstrip() + "\n"


def with_section(page: str, text: str) -> str:
    """The page with this text in place of its section; at the end if it has none."""
    begun = re.search(rf"^{re.escape(TITLE)}$", page, re.MULTILINE)
    if begun is None:
        return page.rstrip() + "\n\n" + text
    after = re.search(r"^## ", page[begun.end() :], re.MULTILINE)
    rest = page[begun.end() + after.start() :] if after else ""
    return page[: begun.start()] + text + (f"\n{rest}" if rest else "")


def _scores(tests: Sequence[ChanceTest]) -> Iterator[str]:
    head = ("tested on", "ends", "worth a restart", "on the border")
    yield f"| {' | '.join((*head, 'Brier', 'of clear labels', 'the usual share'))} |"
    yield "|---|---|---|---|---|---|---|"
    for test in tests:
        worth = sum(each.worth for each in test.scored)
        border = sum(each.on_the_border for each in test.scored)
        yield (
            f"| {test.name} | {len(test.scored)} | {worth} | {border} | {test.brier:.3f} | "
            f"{test.clear_brier:.3f} | {test.usual_brier:.3f} |"
        )


def _reliability(scored: Sequence[Scored]) -> Iterator[str]:
    yield "| chance | ends | mean chance | judged worth a restart |"
    yield "|---|---|---|---|"
    for each in bins(scored):
        within = f"{each.low:.0%} to {each.high:.0%}"
        yield f"| {within} | {each.seen.of} | {each.mean:.0%} | {_share(each.seen)} |"


def _share(ratio: Ratio) -> str:
    low, high = ratio.interval() or (0.0, 1.0)
    return f"{ratio.hits}/{ratio.of} {ratio.hits / ratio.of:.0%} ({100 * low:.0f}\u2013{100 * high:.0f})"
