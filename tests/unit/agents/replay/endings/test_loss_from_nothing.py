"""The loss of a policy that is its own reference begins at nothing, and rises as it learns."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch


def log(*losses: float) -> str:
    return "".join(
        f"{{'loss': {loss}, 'grad_norm': 0.7, 'learning_rate': 1e-06, 'kl': 0.02, 'epoch': {at / 100:.2f}}}\n"
        for at, loss in enumerate(losses, 1)
    )


@pytest.mark.parametrize(
    ("begins", "spikes"), [((0.0, 0.0, 0.0001), False), ((0.0, 0.0002, 0.0001), True), ((0.0001,), True)]
)
def test_a_loss_that_began_at_nothing_may_rise(begins: tuple[float, ...], spikes: bool, watch: Watch) -> None:
    usual = (0.0002, 0.0001, 0.0002, 0.0001) * 3
    done = watch(log(*begins, *usual, 0.007, 0.0074, 0.0071, 0.0078))
    assert (done.verdict.error_type == "loss_spike") is spikes


def test_it_may_still_break(watch: Watch) -> None:
    none = float("nan")
    done = watch(log(0.0, 0.0, 0.0001, 0.0002, none, none, none, none))
    assert done.verdict.error_type == "numerical_instability"


@pytest.mark.parametrize(("high", "spikes"), [(0.007, False), (7.0, True)])
def test_the_loss_of_a_policy_among_its_group_may_rise_while_it_is_small(
    high: float, spikes: bool, watch: Watch
) -> None:
    text = log(0.0001, *(0.0002, 0.0001, 0.0002, 0.0001) * 3, high, high * 1.1, high * 1.2, high * 1.1)
    done = watch(text.replace("'kl'", "'completions/mean_length': 128, 'kl'"))
    assert (done.verdict.error_type == "loss_spike") is spikes
