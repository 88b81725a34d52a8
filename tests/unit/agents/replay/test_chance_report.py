"""What `make fit-diagnosis` counts and writes of the chance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.chance_costs import CostCase, CostedLog, gpu_hours, policies_for
from bench.chance_report import TITLE, ChanceTest, Scored, bins, section, with_section
from bench.fit_chance import JudgedLog, counts_of, each_without_its_group
from midwatch.agents.replay.scoring import Labelled
from midwatch.streams.records import Chance, Verdict

NIGHT = CostCase(8, 6 * 3600.0, 1200.0)


def label(*, transient: bool) -> Labelled:
    return Labelled("id", "", "nccl", transient, "line")


def verdict(share: float, transient: bool | None) -> Verdict:
    return Verdict(
        "failed", "crash", "nccl", "comms", transient=transient, chance=Chance(share, stepped=True)
    )


def log(group: str, *, worth: bool) -> JudgedLog:
    return JudgedLog("dev", group, label(transient=worth), verdict(0.5, True))


def test_ends_are_counted_by_class_and_each_repository_is_judged_by_the_others() -> None:
    logs = [log("a/a", worth=True), log("a/a", worth=True), log("b/b", worth=False)]
    healthy = replace(logs[0], verdict=Verdict("healthy"))
    assert counts_of([*logs, healthy]) == {"nccl/transient/stepped": (2, 3)}
    shares = {scored.worth: scored.share for scored in each_without_its_group(logs)}
    assert shares[True] < 0.5 < shares[False], "neither has seen its own label"


def test_brier_and_bins_are_those_of_the_scored_ends() -> None:
    scored = [Scored(1.0, True), Scored(0.9, False, on_the_border=True), Scored(0.0, False)]
    test = ChanceTest("t", scored, 0.5)
    assert (test.brier, test.clear_brier, test.usual_brier) == pytest.approx((0.27, 0.0, 0.25))
    assert [(each.low, each.seen.hits, each.seen.of) for each in bins(scored)] == [(0.0, 0, 1), (0.8, 1, 2)]
    assert "| t | 3 | 1 | 1 | 0.270 | 0.000 | 0.250 |" in section([test])


def test_the_section_is_replaced_and_the_rest_of_the_page_stays() -> None:
    once = with_section("# Page\n\n## Other\n\ntext\n", f"{TITLE}\n\nold\n")
    between = once + "\n## Behind\n\nmore\n"
    assert with_section(between, f"{TITLE}\n\nnew\n") == between.replace("old", "new")


@pytest.mark.parametrize(
    ("transient", "claim", "share", "costs"),
    [
        (True, True, 0.9, (0.0, 0.0, 0.0, 48.0)),
        (True, None, 0.3, (0.0, 48.0, 0.0, 48.0)),
        (False, None, 0.15, (8 / 3 * 2, 0.0, 8.0, 0.0)),
        (False, False, 0.01, (0.0, 0.0, 8.0, 0.0)),
    ],
)
def test_a_missed_restart_costs_the_wait_and_one_in_vain_a_start(
    transient: bool, claim: bool | None, share: float, costs: tuple[float, ...]
) -> None:
    one = CostedLog(label(transient=transient), verdict(share, claim))
    found = tuple(gpu_hours(policy, one, NIGHT) for policy in policies_for(NIGHT).values())
    assert found == pytest.approx(costs)
