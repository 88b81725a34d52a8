"""Which bundle a partition is judged by: the latest `current` wins, however often it is said."""

from __future__ import annotations

from midwatch.agents.rulesets.reload.activation import activated, bundle_in, is_due
from midwatch.streams.records import Activation

DAY_MS = 86_400_000


def _after(*activations: tuple[str, int], now_ms: int = 0) -> dict[bytes, bytes]:
    state: dict[bytes, bytes] = {}
    for bundle, offset in activations:
        state |= activated(state, Activation(bundle, offset), now_ms)
    return state


def test_before_the_first_one_no_bundle_is_in_force() -> None:
    assert bundle_in({}) == ""
    assert is_due({}, 0, 0)


def test_an_older_one_that_comes_late_changes_nothing() -> None:
    assert bundle_in(_after(("a", 3), ("b", 7), ("a", 3))) == "b"
    assert bundle_in(_after(("b", 7), ("forged", 7))) == "b"


def test_going_back_to_an_older_bundle_is_a_later_word() -> None:
    assert bundle_in(_after(("a", 3), ("b", 7), ("a", 9))) == "a"


def test_the_owner_writes_one_for_each_change_and_one_a_day() -> None:
    state = _after(("a", 3), now_ms=1000)
    assert not is_due(state, 3, 1000)
    assert is_due(state, 4, 1000)
    assert not is_due(state, 2, 1000)
    assert is_due(state, 3, 1000 + DAY_MS)
    again = {**state, **activated(state, Activation("a", 3), 1000 + DAY_MS)}
    assert not is_due(again, 3, 1000 + DAY_MS)
