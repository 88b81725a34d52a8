"""A training whose losses are broken or high up to its end failed, though it tells of its end."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.replay.endings.test_open_spike import log


def trainer(*losses: str) -> str:
    lines = (
        f"{{'loss': {loss}, 'grad_norm': 1.2, 'epoch': 0.{at:03}}}\n" for at, loss in enumerate(losses, 1)
    )
    return "".join(lines).replace(", 'epoch'", ", 'learning_rate': 1e-05, 'epoch'")


ENDED = "{'train_runtime': 812.1, 'train_samples_per_second': 9.1, 'train_loss': nan, 'epoch': 1.0}\n"


@pytest.mark.parametrize(
    ("losses", "failed"),
    [
        pytest.param(("2.1", "2.0", "nan", "nan", "nan"), True, id="broken to the end"),
        pytest.param(("2.1", "'nan'", "'nan'", "'nan'"), True, id="in quotes"),
        pytest.param(("2.1", "2.0", "nan", "nan", "nan", "1.9"), False, id="whole again"),
        pytest.param(("2.1", "2.0", "1.9", "nan", "nan"), False, id="two of them"),
    ],
)
def test_a_training_that_ends_with_broken_losses_failed_though_it_tells_of_its_end(
    watch: Watch, losses: tuple[str, ...], failed: bool
) -> None:
    done = watch(trainer(*losses) + ENDED)
    assert (done.verdict.error_type == "numerical_instability") is failed
    assert (done.decision.action == "hold") is failed


@pytest.mark.parametrize(
    ("losses", "failed"),
    [
        pytest.param(("2.9", "0.0", "0.0", "0.0"), True, id="at once"),
        pytest.param(("2.9", "0.9", "0.0", "0.0", "0.0", "0.0"), True, id="behind a fall"),
        pytest.param(("2.9", "0.0", "0.0"), False, id="two of them"),
        pytest.param(("2.9", "0.0", "0.0", "0.0", "0.4"), False, id="back again"),
        pytest.param(("0.9", "0.0003", "0.0", "0.0", "0.0"), False, id="learnt"),
        pytest.param(("0.4", "0.0", "0.3", "0.0", "0.0", "0.0"), False, id="nothing now and then"),
        pytest.param(("0.0", "0.0", "0.0", "0.0"), False, id="never more"),
    ],
)
def test_a_loss_that_falls_to_nothing_at_once_was_not_learnt(
    watch: Watch, losses: tuple[str, ...], failed: bool
) -> None:
    done = watch(trainer(*losses))
    assert (done.verdict.error_type == "numerical_instability") is failed
    assert (done.decision.action == "hold") is failed
    assert watch(trainer(*losses) + ENDED.replace("nan", "0.9")).verdict.state == "healthy"
    assert watch(trainer(*losses).replace("'loss'", "'eval_loss'")).verdict.state != "failed"


def test_a_spike_of_many_losses_is_open_behind_the_end_of_the_training(watch: Watch) -> None:
    low, ended = (2.0, 2.1, 2.0, 2.1), "training done\n"
    assert (
        watch(log(*low, *(6.0 + 0.1 * (n % 3) for n in range(20))) + ended).verdict.error_type == "loss_spike"
    )
    assert watch(log(*low, 6.0, 6.1, 6.0) + ended).verdict.state == "healthy"


def test_a_loss_of_an_evaluation_that_is_no_number_breaks_no_training(watch: Watch) -> None:
    whole = "".join(f"Epoch {n}/9 | val loss 2.{n} | acc 0.{n}\n" for n in range(1, 4))
    broken = "".join(f"Epoch {n}/9 | val loss nan | acc 0.{n}\n" for n in range(4, 9))
    assert watch(whole + broken + ENDED).verdict.state == "healthy"
    for words in ("train loss", "loss nan, val loss"):
        text = whole.replace("val loss", "loss") + broken.replace("val loss", words)
        assert watch(text + ENDED).verdict.error_type == "numerical_instability"
