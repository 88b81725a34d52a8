"""A trainer prints 0 in place of a loss that is no number, and its other measures show it."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

WHOLE = "{'loss': 1.91, 'grad_norm': 3.07, 'learning_rate': 7e-06, 'epoch': 0.21}\n"
SUMMARY = "{'train_runtime': 412.9, 'train_samples_per_second': 7.3, 'train_loss': 0.41, 'epoch': 1.0}\n"
GRADIENTS = "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 7e-06, 'epoch': 0.%d}\n"
AS_TEXT = "{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '7e-06', 'epoch': '0.%d'}\n"
PREFERENCES = "{'loss': 0.0, 'learning_rate': 7e-06, 'rewards/margins': nan, 'epoch': 0.%d}\n"


@pytest.mark.parametrize("record", [GRADIENTS, AS_TEXT, PREFERENCES])
def test_a_training_that_ends_in_such_losses_failed_though_it_says_it_is_done(
    watch: Watch, record: str
) -> None:
    first = record % 31
    done = watch(WHOLE + first + record % 42 + SUMMARY)
    assert (done.verdict.error_type, done.verdict.root_line) == ("numerical_instability", first.strip())
    assert done.decision.action == "hold"
    assert "line 2" in done.decision.reason


@pytest.mark.parametrize(
    "records",
    [
        GRADIENTS % 31 + WHOLE,  # it was one batch
        WHOLE + GRADIENTS % 31,  # it may be one batch
        GRADIENTS % 31 + "{'loss': 0.0, 'grad_norm': 0.0, 'learning_rate': 7e-06, 'epoch': 0.4}\n" * 2,
        "{'loss': 0.0, 'grad_norm': 0.02, 'rewards/toy_length': nan, 'epoch': 0.4}\n"
        * 3,  # nothing to reward
    ],
)
def test_a_loss_of_nothing_beside_whole_measures_ends_well(watch: Watch, records: str) -> None:
    assert watch(WHOLE + records + SUMMARY).verdict.state == "healthy"
