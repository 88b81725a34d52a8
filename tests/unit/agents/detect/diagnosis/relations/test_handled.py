"""A module that was missing above a full card: the program did without it, or it was another program's."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

MISSING = (
    'Traceback (most recent call last):\n  File "toys/tracker.py", line 3, in <module>\n    import toybox\n'
    "ModuleNotFoundError: No module named 'toybox'\n"
)
WORK = "the toys are wound up\n" * 3
FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB.\n"
RAISED = 'Traceback (most recent call last):\n  File "toys/train.py", line 9, in <module>\n    wind(toys)\n{}'


@pytest.mark.parametrize(
    ("later", "error_type"),
    [
        (RAISED.format(FULL), "oom"),
        (RAISED.format("KeyError: 'spring'\n"), "import_error"),  # it may follow from the missing module
        ("", "import_error"),
    ],
)
def test_only_what_cannot_follow_from_a_missing_module_is_the_root(
    watch: Watch, later: str, error_type: str
) -> None:
    assert watch(f"{MISSING}{WORK}{later}").verdict.error_type == error_type


def test_a_module_that_ended_no_rank_is_not_why_a_mistake_ended_one(watch: Watch) -> None:
    def ends(raised: str) -> str:
        ranked = RAISED.format(raised).replace("\n", "\n[rank3]: ")
        return watch(f"{MISSING}{WORK}[rank3]: {ranked}\n").verdict.root_line

    missing = "ModuleNotFoundError: No module named 'toybox'"
    assert ends("KeyError: 'spring'") == "[rank3]: KeyError: 'spring'"
    assert ends("NameError: name 'toybox' is not defined") == missing
    ranked = MISSING.replace("Mod", "[rank2]: Mod").replace("  ", "[rank2]:   ")
    done = watch(
        f"[rank2]: {ranked}[rank3]: " + RAISED.format("KeyError: 'spring'").replace("\n", "\n[rank3]: ")
    )
    assert done.verdict.root_line == f"[rank2]: {missing}"


def test_a_full_card_in_front_of_it_shows_no_work_behind(watch: Watch) -> None:
    assert watch(f"{WORK}{RAISED.format(FULL)}{WORK}{MISSING}").verdict.error_type == "oom"


def test_a_full_card_in_another_file_says_nothing_of_the_module(watch: Watch) -> None:
    first, second = (f"2026-03-02 11:{minute}:40,118 INFO the toys are there\n" for minute in (52, 58))
    done = watch(f"{first}{MISSING}", f"{second}{WORK}{RAISED.format(FULL)}")
    assert done.verdict.error_type == "import_error"
