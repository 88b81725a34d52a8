"""Broken numbers stay a failure until a usual loss is printed behind them."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

FORM = "Epoch [{}/40], Train Loss: {}\n"


def epochs(*losses: str) -> str:
    return "".join(FORM.format(n, loss) for n, loss in enumerate(losses, 1))


def test_a_run_that_comes_down_from_a_broken_first_loss_goes_on(watch: Watch) -> None:
    assert watch(epochs("nan", "81.2", "7.12", "0.71", "0.61")).verdict.state != "failed"


@pytest.mark.parametrize("huge", ["8e13", "81276361234567.125", "-3e31"])
def test_a_finite_loss_beyond_all_bounds_shows_no_recovery(watch: Watch, huge: str) -> None:
    done = watch(epochs("nan", huge, huge, huge, huge))
    assert (done.verdict.error_type, done.verdict.root_line_number) == ("numerical_instability", 1)


def test_a_run_that_stays_broken_fails(watch: Watch) -> None:
    done = watch(epochs("0.81", "nan", "nan", "nan", "nan"))
    assert (done.verdict.error_type, done.verdict.root_line_number) == ("numerical_instability", 2)
