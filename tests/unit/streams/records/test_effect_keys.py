"""The names of orders and effects: what must meet meets, what must not does not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from midwatch.streams.records.effect_keys import command_id, effect_key, effects_of

parts = st.tuples(st.text(max_size=12), st.integers(0, 99))


def test_a_second_order_for_the_same_attempt_shares_its_effects_but_not_its_id() -> None:
    assert command_id("local:ann/r", 1, 1) != command_id("local:ann/r", 1, 2)
    assert effect_key("local:ann/r", 1, "start") == effect_key("local:ann/r", 1, "start")


def test_the_start_of_an_attempt_is_not_its_end_nor_that_of_the_next() -> None:
    keys = {effect_key("local:ann/r", n, effect) for n in (1, 2, 11) for effect in ("start", "end")}
    assert len(keys) == 6


@given(parts, parts)
def test_two_attempts_never_share_a_key(a: tuple[str, int], b: tuple[str, int]) -> None:
    assert (effect_key(*a, "start") == effect_key(*b, "start")) == (a == b)


def test_a_key_fits_every_scheduler() -> None:
    key = effect_key("slurm:ann/run.with+odd@name", 12, "start")
    assert key.isalnum()
    assert len(key) == 32


def test_a_restart_ends_before_it_starts_and_a_cancel_starts_nothing() -> None:
    assert effects_of("restart") == ("end", "start")
    assert effects_of("cancel") == ("end",)
