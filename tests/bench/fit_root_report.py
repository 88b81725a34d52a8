"""The section of `bench/results/diagnosis.md` on the order by hand and fitted weights. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from midwatch.agents.replay.scoring import Ratio

_WIDTH = 110
TITLE = "## Order by hand and fitted weights"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Right root lines of one group of labelled failures.

    `held_out`: by weights fitted without the failure's repository; `only_by_hand` of them are right by hand
    alone. `transferred`: by weights of the first batches; None where those were fitted on the group.
    """

    name: str
    of: int
    by_place: int
    by_hand: int
    in_sample: int
    held_out: int
    only_by_hand: int
    transferred: int | None
    penalty: float
    weights: int
    repositories: int


def page_with(page: str, rows: Sequence[Comparison]) -> str:
    """The page with this section in place of the old one; at the end if it has none."""
    text = "\n".join([TITLE, "", *_section(rows)]) + "\n"
    begun = re.search(rf"^{re.escape(TITLE)}$", page, re.MULTILINE)
    if begun is None:
        return page.rstrip() + "\n\n" + text
    after = re.search(r"^## ", page[begun.end() :], re.MULTILINE)
    return page[: begun.start()] + text + (f"\n{page[begun.end() + after.start() :]}" if after else "")


def _section(rows: Sequence[Comparison]) -> list[str]:
    every = next(row for row in rows if row.name == "all")
    head = "| labelled failures | earliest candidate | by hand | weights, each repository by the others | "
    table = [head + "weights of dev and batch 1 | weights, in sample |", "|---|---|---|---|---|---|"]
    for row in rows:
        transferred = "" if row.transferred is None else _share(row.transferred, row.of)
        table.append(
            f"| {row.name} ({row.of}) | {_share(row.by_place, row.of)} | {_share(row.by_hand, row.of)} | "
            f"{_share(row.held_out, row.of)} | {transferred} | {_share(row.in_sample, row.of)} |"
        )
    about = (
        f"Right root lines, by `make fit-diagnosis`. The {every.weights} weights are of a pairwise logistic "
        f"loss with an L2 penalty of {every.penalty:g}, which dev and batch 1 chose. They look at the "
        "features of the order by hand, and at place, rank, family, transience and distance from the end. "
        "Which lines are set aside, and all that follows the choice, is the same for all."
    )
    return [
        *wrap(about, _WIDTH),
        "",
        *table,
        "",
        *_kept(rows),
    ]


def _kept(rows: Sequence[Comparison]) -> list[str]:
    later = next(row for row in rows if row.transferred is not None and row.name.startswith("batches"))
    every = next(row for row in rows if row.name == "all")
    transferred = later.transferred or 0
    only_by_weights = every.held_out - (every.by_hand - every.only_by_hand)
    differ = (
        f"Of {every.repositories} repositories, each by weights of the others: {every.only_by_hand} lines "
        f"are right by hand only, {only_by_weights} by weights only. "
    )
    if every.held_out > every.by_hand and transferred >= later.by_hand:
        return wrap(f"{differ}The weights generalise better, so they should decide.", _WIDTH)
    stays = (
        "The weights generalise no better, so the order by hand decides, and no weights are shipped. It was "
        "written after all batches were read, so the comparison favours it."
    )
    return wrap(differ + stays, _WIDTH)


def _share(hits: int, of: int) -> str:
    bounds = Ratio(hits, of).interval()
    if bounds is None:
        return "-"
    low, high = (round(100 * bound) for bound in bounds)
    return f"{hits}/{of} {100 * hits / of:.0f} % ({low}\N{EN DASH}{high})"
