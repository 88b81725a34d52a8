"""A program prints a heading, and below it the words of an exception that nothing names."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.endings.error_headings import HEADED
from unit.agents.conftest import Watch

STEPS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 31))
WORDS = "The index of a wheel is out of its bounds: 0 <= wheel"
STACK = "Coming from:\n" + "".join(f"- /toys/src/paint.cpp:brush{n}():{n}7\n" for n in range(6))


@pytest.mark.parametrize(
    "heading",
    [
        "Error:",
        "Exception raised: ",
        "Unexpected error:",
        "All brushes are put away. Error description:",
        "  32/60000 [......] - ETA: 1:44:14Exception raised: ",
        "[toys] Fatal error occurred:",
    ],
)
@pytest.mark.parametrize("behind", ["", STACK])
def test_the_words_below_the_heading_are_the_root(watch: Watch, heading: str, behind: str) -> None:
    for above in (STEPS, "the toys are unpacked\n"):
        done = watch(f"{above}{heading}\n\n{WORDS}\n{behind}")
        assert (done.verdict.error_type, done.verdict.root_line) == ("exception", WORDS)
        assert (done.decision.action, done.decision.reason) == ("hold", HEADED)


@pytest.mark.parametrize(
    "text",
    [
        f"Error:\n{WORDS}\n{STEPS}",
        STEPS + f"Error:\n{WORDS}\n" + "".join(f"a toy of shelf {n} dries\n" for n in range(40)),
        f"{STEPS}Mean error:\n{WORDS}\n",
        f"{STEPS}Error:\n0.071\n",
        f"{STEPS}Error:\nmean of all wheels: 0.071\n",
        f"{STEPS}Error:\nThe wheel is lost, so we take another one instead, skipping it\n",
        f"{STEPS}WARNING - Error:\n{WORDS}\n",
        f"{STEPS}Error:\nTraceback (most recent call last):\n" + "a toy dries\n" * 9,
        f"{STEPS}`Trainer.fit` stopped: `max_steps=30` reached.\nError:\n{WORDS}\n",
    ],
    ids=[
        "steps behind",
        "work behind",
        "a measure's name",
        "a number",
        "a measure",
        "got over",
        "a warning",
        "a traceback",
        "done",
    ],
)
def test_other_headings_end_nothing(watch: Watch, text: str) -> None:
    assert watch(text).verdict.state != "failed"


def test_words_that_a_rule_knows_need_no_heading(watch: Watch) -> None:
    done = watch(f"{STEPS}Error:\nCUDA out of memory. Tried to allocate 7.00 GiB.\n")
    assert done.verdict.error_type == "oom"


PAINTED = "2026-03-02 11:52:40 - ERROR - Not painted was the toy {name}. Error: \n" + WORDS + "\n"
SUM = "2026-03-02 11:52:41 - INFO - Toys painted: 41\n2026-03-02 11:52:41 - INFO - Share: 71.20%\n"


@pytest.mark.parametrize(
    ("names", "behind", "error_type"),
    [
        (("boat", "car", "doll", "kite"), SUM, ""),
        (("boat", "car"), SUM, "exception"),
        (("boat", "car", "doll", "kite"), "", "exception"),
        (("boat", "boat", "boat", "boat"), SUM, "exception"),
    ],
    ids=["summed up", "few", "nothing behind", "the same one"],
)
def test_a_program_that_sums_up_behind_the_errors_of_many_items_went_on(
    watch: Watch, names: tuple[str, ...], behind: str, error_type: str
) -> None:
    text = "the toys are unpacked\n" + "".join(PAINTED.format(name=name) for name in names) + behind
    assert watch(text).verdict.error_type == error_type
