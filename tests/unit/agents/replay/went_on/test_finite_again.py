"""A broken loss behind which whole ones stand in lines of the same form ended nothing."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch


def epochs(*losses: str) -> str:
    """Epochs that a program prints in a form of its own, each drawn over the one before."""
    drawn = (
        f"Train Epoch: {n} [100%] || Time: 0 min {n % 7} || Loss: {loss} || Acc: 0.9"
        for n, loss in enumerate(losses, 1)
    )
    return "\r".join(drawn) + "\n"


@pytest.mark.parametrize(
    ("losses", "failed"),
    [
        (("3.2", "nan", "nan", "3.1", "3.2", "2.9"), False),
        (("3.2", "inf", "3.1", "3.2", "2.9", "2.7"), False),
        (("3.2", "nan", "nan", "3.1", "3.2"), True),
        (("3.2", "nan", "3.1", "3.0", "2.9", "nan"), True),
        (("3.2", "nan", "nan", "nan", "nan", "nan"), True),
    ],
)
def test_whole_losses_behind_the_last_broken_one_show_that_it_spoilt_nothing(
    watch: Watch, losses: tuple[str, ...], failed: bool
) -> None:
    assert (watch(epochs(*losses)).verdict.state == "failed") is failed


def test_other_lines_with_numbers_behind_it_show_nothing(watch: Watch) -> None:
    others = "".join(f"memory in use: 3.{n} GB\n" for n in range(9))
    assert watch(epochs("3.2", "nan") + others).verdict.state == "failed"


def caffe(*losses: str) -> str:
    lines = enumerate(losses)
    return "".join(
        f"I0302 11:52:4{at}.118290 77 solver.cpp:228] Iteration {at}00, loss = {loss}\n" for at, loss in lines
    )


def test_the_highest_loss_of_caffe_is_a_broken_one(watch: Watch) -> None:
    assert watch(caffe("2.1", "87.3365", "87.3365")).verdict.error_type == "numerical_instability"
    assert watch(caffe("2.1", "87.3365", "2.2", "2.1", "2.0")).verdict.state == "healthy"


SKIPPED = "Gradient overflow, skipping step, loss scaler 0 reducing loss scale to 7.0\n"


def rounds(*lines: str) -> str:
    """Rounds of a program that prints the loss of one of its parts."""
    told = (
        line if line.endswith("\n") else f"Round: {n:04}/0900 DLoss:{line} Reg:0.1\n"
        for n, line in enumerate(lines)
    )
    return "".join(told)


@pytest.mark.parametrize(
    ("lines", "failed"),
    [
        ((SKIPPED, "nan", SKIPPED, "6.1", "6.0"), False),
        (("nan", SKIPPED, "6.1", "6.0"), False),
        ((SKIPPED, "nan", "6.1", "6.0"), False),
        ((SKIPPED, "nan", SKIPPED, "6.1"), True),
        (("nan", "6.1", "6.0"), True),
        ((SKIPPED, "6.1", "nan", SKIPPED, "nan"), True),
    ],
)
def test_two_whole_losses_are_enough_where_a_scaler_skipped_the_step(
    watch: Watch, lines: tuple[str, ...], failed: bool
) -> None:
    assert (watch(rounds(*lines)).verdict.state == "failed") is failed
