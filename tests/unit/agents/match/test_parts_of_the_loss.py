"""A part of the loss that is no number says nothing where the loss and its gradients are numbers."""

from __future__ import annotations

import pytest

from midwatch.agents.match.parts_of_the_loss import is_only_a_part
from unit.agents.conftest import Watch

PART = "step:7 - actor/toy_pg_loss:nan - actor/pg_loss:-0.2 - actor/grad_norm:0.4 - toys:9"


@pytest.mark.parametrize(
    "line",
    [
        PART,
        "{'loss': 2.1, 'toy_loss': nan, 'grad_norm': 0.4}",
        "step 7 loss_toy = nan loss = 2.1 gradnorm = 0.4",
        "epoch 7 iter 70, avg_loss: 7.1, wheel loss: 4.1, toy loss: nan",
    ],
)
def test_a_named_part_beside_a_loss_and_gradients_that_are_numbers_is_only_a_part(line: str) -> None:
    assert is_only_a_part(line.encode())


@pytest.mark.parametrize(
    "line",
    [
        "{'loss': nan, 'grad_norm': 0.4, 'toy_loss': 2.1}",
        "step:7 - actor/loss:nan - actor/pg_loss:-0.2 - actor/grad_norm:0.4",
        "step:7 - actor/toy_pg_loss:nan - actor/pg_loss:-0.2 - actor/grad_norm:nan",
        "step:7 - actor/toy_pg_loss:nan - actor/grad_norm:0.4",
        "step:7 - actor/pg_loss:-0.2 - actor/grad_norm:0.4",
        "epoch 7 iter 70, avg_loss: nan, wheel loss: 4.1, toy loss: nan",
        "epoch 7 iter 70, wheel loss: 4.1, toy loss: nan",
        "epoch 7 iter 70, avg_loss: 7.1, train loss: nan",
    ],
)
def test_a_broken_loss_or_norm_is_none(line: str) -> None:
    assert not is_only_a_part(line.encode())


def test_a_run_with_such_records_is_healthy(watch: Watch) -> None:
    assert watch(f"{PART}\n{PART.replace('step:7', 'step:8')}\n").verdict.state != "failed"
    broken = PART.replace("actor/pg_loss:-0.2", "actor/pg_loss:nan")
    assert watch(f"{PART}\n{broken.replace('step:7', 'step:8')}\n").verdict.state == "failed"
