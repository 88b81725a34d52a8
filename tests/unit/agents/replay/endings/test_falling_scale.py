"""A saved log that ends while its loss scale falls at each step. A person decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.replay.endings.falling_scale import FALLS, falling_scale
from unit.agents.conftest import Watch

DEEPSPEED = (
    "[2026-03-02 10:0{n}:00,000] [INFO] [toy_scaler.py:7:step] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
    "Attempted loss scale: {0:g}, reducing to {1:g}"
)
APEX = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {1}"
FAIRSEQ = (
    "2026-03-02 10:0{n}:00 | INFO | toy.trainer | gradient overflow detected, ignoring gradient, "
    "setting loss scale to: {1}"
)
SCALERS = [DEEPSPEED, APEX, FAIRSEQ]
BAR = " 14%|#4        | {n}/2724 [13:55:57<86:19:20, 132.41s/it]"


def fall(scaler: str, first: float, halvings: int, between: str = "") -> str:
    told = []
    for n in range(halvings):
        told.append(scaler.format(first / 2**n, first / 2 ** (n + 1), n=n))
        told.append(between.format(n=n) if between else f"the toy takes batch {n}")
    return "step 7 loss 2.31\nstep 8 loss 2.30\n" + "\n".join(told) + "\n"


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("between", ["", BAR])
def test_a_scale_that_falls_to_almost_nothing_is_the_end(watch: Watch, scaler: str, between: str) -> None:
    text = fall(scaler, 64.0, 5, between)
    done = watch(text)
    assert (done.verdict.error_type, done.decision.action) == ("numerical_instability", "hold")
    assert done.decision.reason == FALLS
    lowest = [number for number, line in enumerate(text.split("\n"), 1) if "cale" in line][-1]
    assert done.verdict.root_line_number == lowest


@pytest.mark.parametrize("scaler", SCALERS)
def test_a_scale_that_is_sought_from_above_is_no_failure(watch: Watch, scaler: str) -> None:
    assert watch(fall(scaler, 65536.0, 9)).verdict.state != "failed"  # ends at 128
    assert watch(fall(scaler, 16.0, 2)).verdict.state != "failed"  # fell twice


@pytest.mark.parametrize("scaler", SCALERS)
def test_steps_behind_the_fall_or_between_its_parts_end_it(watch: Watch, scaler: str) -> None:
    steps = "".join(f"step {n} loss 2.{n}\n" for n in range(10, 22))
    assert watch(fall(scaler, 64.0, 5) + steps).verdict.state != "failed"
    halves = fall(scaler, 64.0, 3) + steps + fall(scaler, 8.0, 2)
    assert watch(halves).verdict.state != "failed"


@given(st.lists(st.binary(max_size=60), max_size=12))
def test_any_lines_end_in_a_fall_or_not(lines: list[bytes]) -> None:
    numbered = list(enumerate(lines, 1))
    found = falling_scale(numbered)
    assert found is None or found in dict(numbered)
