"""The chance of a verdict: how counts of ends become one number and one sentence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from house.tree import ROOT
from midwatch.agents.detect.diagnosis.chance import (
    ENOUGH,
    NEAR,
    STRENGTH,
    EndClass,
    chance_of,
    class_named,
    counted,
    shipped,
)
from midwatch.agents.rulesets.outcomes import Counts, counts_text, own_outcomes, read_counts
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records.error_types import FAMILIES

TYPES = [*(kind for kinds in FAMILIES.values() for kind in kinds), "unknown", "own_type"]
_CLAIMS = (True, False, None)
ENDS = st.builds(EndClass, st.sampled_from(TYPES), st.sampled_from(_CLAIMS), st.booleans())
COUNTS = st.dictionaries(
    ENDS.map(lambda end: end.name),
    st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: (min(pair), max(pair))),
    max_size=12,
)
TIMEOUT = EndClass("nccl_timeout", True, True)


def share(end: EndClass, counts: Counts, own: Counts | None = None) -> float:
    return chance_of(end, counted(counts), own_outcomes(own) if own else None).share


def test_many_ends_of_a_type_speak_for_themselves_and_few_lean_on_their_family() -> None:
    others = {"nccl/transient/stepped": (30, 30)}
    assert share(TIMEOUT, others) > 0.9, "nothing is known of the type but its family"
    assert 0.4 < share(TIMEOUT, {**others, TIMEOUT.name: (0, 3)}) < 0.7
    assert share(TIMEOUT, {**others, TIMEOUT.name: (0, 300)}) < 0.02
    elsewhere = {"hardware/permanent/unstepped": (0, 40)}
    assert share(TIMEOUT, {**others, **elsewhere}) > 0.8, "other claims and steps count as all ends alone"


def test_nothing_counted_is_an_even_chance_and_the_sentence_says_so() -> None:
    found = chance_of(TIMEOUT, ())
    assert (found.share, found.sentence) == (0.5, "no labelled end is like this")


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (
            {TIMEOUT.name: (12, 17)},
            "12 of 17 labelled ends like this (nccl_timeout, transient, after a step)",
        ),
        (
            {TIMEOUT.name: (1, ENOUGH - 1), "desync/transient/stepped": (2, 3)},
            f"1 of {ENOUGH - 1} labelled ends like this (nccl_timeout, transient, after a step) "
            f"and 3 of {ENOUGH + 2} (comms, transient, after a step)",
        ),
        ({"oom/transient/stepped": (1, 9)}, "1 of 9 labelled ends like this (transient)"),
        ({"oom/permanent/stepped": (1, 9)}, "1 of 9 labelled ends like this (all failures)"),
    ],
)
def test_the_sentence_names_the_classes_from_the_narrowest_to_one_with_enough_ends(
    counts: Counts, sentence: str
) -> None:
    found = chance_of(TIMEOUT, counted(counts))
    assert found.sentence == f"{sentence} were judged worth a restart"


def test_what_moved_the_chance_stands_in_its_sentence() -> None:
    counts = {TIMEOUT.name: (0, 1), "nccl/transient/stepped": (10, 10)}
    found = chance_of(TIMEOUT, counted(counts))
    assert (found.worth, found.of, found.like) == (10, 11, "comms, transient, after a step")
    assert found.share < 0.8 < 10 / 11, "the one end of its type counts"
    assert found.sentence == (
        "0 of 1 labelled ends like this (nccl_timeout, transient, after a step) "
        "and 10 of 11 (comms, transient, after a step) were judged worth a restart"
    )


EVERY_END = [EndClass(kind, claim, steps) for kind in TYPES for claim in _CLAIMS for steps in (True, False)]


@pytest.mark.parametrize("end", EVERY_END, ids=lambda end: end.name)
def test_by_the_shipped_counts_the_chance_follows_from_the_named_ends(end: EndClass) -> None:
    found = chance_of(end, shipped())
    shares = [each.worth / each.of for each in found.classes]
    assert min(shares) - NEAR <= found.share <= max(shares) + NEAR
    assert found.classes[-1].of >= ENOUGH


def test_own_restarts_move_the_chance_and_are_told_beside_the_labelled_ends() -> None:
    labelled = counted({TIMEOUT.name: (12, 17)})
    own = own_outcomes({TIMEOUT.name: (0, 4), "nccl/transient/stepped": (9, 9)})
    found = chance_of(TIMEOUT, labelled, own)
    assert found.sentence.endswith("were judged worth a restart; of your own restarts 0 of 4 passed")
    assert found.share < chance_of(TIMEOUT, labelled).share / 1.9
    assert found.outcomes == own.hash
    kin = chance_of(EndClass("desync", True, True), labelled, own)
    assert (kin.own_passed, kin.own) == (9, 13), "none of its type: those of its family count"
    apart = chance_of(EndClass("oom", True, True), labelled, own)
    assert (apart.own, apart.outcomes) == (0, own.hash), "it still names the counts that were asked"


@given(ENDS, COUNTS, COUNTS)
@settings(max_examples=cases(300))
def test_a_chance_is_a_share_and_never_certain(end: EndClass, counts: Counts, own: Counts) -> None:
    found = chance_of(end, counted(counts), own_outcomes(own))
    assert 0 <= found.share <= 1
    assert found.worth <= found.of
    assert found.own_passed <= found.own
    of = sum(of for _, of in (*counts.values(), *own.values()))
    least = 0.5 * (STRENGTH / (STRENGTH + of)) ** 8
    assert least - 1e-4 <= found.share <= 1 - least + 1e-4


@given(ENDS, COUNTS, ENDS)
@settings(max_examples=cases(300))
def test_one_more_end_that_passed_never_lowers_a_chance(
    end: EndClass, counts: Counts, more: EndClass
) -> None:
    passed, of = counts.get(more.name, (0, 0))
    known, one_more = share(end, counts), share(end, {**counts, more.name: (passed + 1, of + 1)})
    assert one_more >= known - 1e-4
    assert share(end, {**counts, more.name: (passed, of + 1)}) <= known + 1e-4


@given(ENDS, COUNTS)
@settings(max_examples=cases(200))
def test_order_does_not_count_and_a_file_keeps_all(end: EndClass, counts: Counts) -> None:
    turned = dict(reversed(list(counts.items())))
    assert (share(end, turned), own_outcomes(turned).hash) == (share(end, counts), own_outcomes(counts).hash)
    assert read_counts(counts_text(counts).encode(), "f") == counts
    assert class_named(end.name) == end


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"version": 2, "ends": {}}',
        '{"version": 1, "ends": {"oom": [1, 2]}}',
        '{"version": 1, "ends": {"oom/perhaps/stepped": [1, 2]}}',
        '{"version": 1, "ends": {"oom/unknown/stepped": [3, 2]}}',
        '{"version": 1, "ends": {"oom/unknown/stepped": [-1, 2]}}',
        '{"version": 1, "ends": {}, "log": "RuntimeError"}',
        f'{{"version": 1, "ends": {{"oom/unknown/stepped": [0, {2**53}], "hang/unknown/stepped": [0, 1]}}}}',
    ],
)
def test_a_file_that_holds_no_counts_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_counts(text.encode(), "outcomes.json")
    assert refused.value.where == "outcomes.json"


def test_what_ships_is_counts_of_known_types_and_a_claim_counts_for_much() -> None:
    ends = shipped()
    assert {one.end.error_type for one in ends} <= {*TYPES, "unknown"}
    assert sum(one.of for one in ends) == 383, "the number that CHANGELOG.md tells"
    passing, open_, lasting = (
        chance_of(EndClass("unknown", claim, stepped=False), ends).share for claim in (True, None, False)
    )
    assert passing > 0.8
    assert 0.3 > open_ > lasting


def test_the_examples_of_the_page_are_what_the_shipped_counts_say() -> None:
    found = [chance_of(end, shipped()) for end in EVERY_END]
    said = {f"chance    {each.share:.0%}: {each.sentence}" for each in found}
    page = (ROOT / "docs/verdicts.md").read_text(encoding="utf-8").splitlines()
    examples = {line for line in page if line.startswith("chance    ")}
    assert len(examples) == 2
    assert examples <= said


def test_an_end_without_memory_is_judged_by_its_type_whoever_tells_of_it() -> None:
    """The scheduler's bare word claims nothing of transience. No such end was worth a restart."""
    for stepped in (True, False):
        found = chance_of(EndClass("host_oom", None, stepped), shipped())
        assert found.share < 0.05
        assert found.sentence == "0 of 31 labelled ends like this (host_oom) were judged worth a restart"
    claimed = chance_of(EndClass("nccl_timeout", True, True), shipped()).share
    open_ = chance_of(EndClass("nccl_timeout", None, True), shipped()).share
    assert claimed > 0.25 > open_, "a claim counts within its type too"


def test_a_person_s_interrupt_tells_nothing_of_other_ends() -> None:
    counts = {"user_interrupt/unknown/stepped": (9, 9), "nccl/unknown/stepped": (1, 9)}
    found = chance_of(EndClass("unknown", None, True), counted(counts))
    assert (found.share < 0.2, found.worth, found.of) == (True, 1, 9)
    assert share(EndClass("user_interrupt", None, True), counts) > 0.9, "but of its own type it does"


@pytest.mark.parametrize(
    ("end", "grounds"),
    [
        (EndClass("unknown", None, True), 0),
        (EndClass("own_type", None, True), 0),
        (EndClass("nccl_timeout", None, True), 2 + 3),
        (EndClass("oom", None, True), 0),
        (EndClass("own_type", True, False), 2 + 40),
        (EndClass("hardware", None, False), 40),
        (EndClass("user_interrupt", None, False), 9),
    ],
)
def test_ends_of_the_type_of_its_family_and_claim_or_with_a_claim_that_says_something_are_grounds(
    end: EndClass, grounds: int
) -> None:
    counts = {
        "nccl_timeout/transient/stepped": (1, 2),
        "nccl/unknown/unstepped": (1, 3),
        "hardware/transient/stepped": (38, 40),
        "user_interrupt/unknown/stepped": (9, 9),
    }
    assert chance_of(end, counted(counts)).grounds == grounds
    own = own_outcomes({end.name: (2, 6)})
    assert chance_of(end, counted(counts), own).grounds == grounds + 6, "own restarts are grounds as well"
