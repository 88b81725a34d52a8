"""A trainer that prints its losses in lines without a step has spikes, too."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

RECORD = "{'loss': %s, 'grad_norm': %s, 'learning_rate': 7e-06, 'epoch': 0.%02d}\n"
USUAL = [("1.9", "0.7"), ("2.0", "0.9"), ("1.8", "0.8")] * 4


def log(*records: tuple[str, str]) -> str:
    return "".join(RECORD % (*each, at) for at, each in enumerate([*USUAL, *records], 1))


@pytest.mark.capability("C-4", "S003-32")
@pytest.mark.parametrize(
    ("record", "told"),
    [
        (("7.3", "9.1"), "the loss is 7.3 (log:13); lately it was 1.9"),
        (("nan", "nan"), "the loss is nan (log:13); lately it was 1.9"),
        (("0.0", "nan"), "the gradients are no number while the loss is 0.0 (log:13); lately it was 1.9"),
    ],
)
def test_a_spike_is_told_with_its_line(watch: Watch, record: tuple[str, str], told: str) -> None:
    findings = watch(log(record, *USUAL)).findings
    assert [(each.kind, each.detail) for each in findings] == [("loss_spike", told)]


def test_an_ordinary_loss_and_one_that_is_learnt_are_none(watch: Watch) -> None:
    assert watch(log(("2.3", "1.1"), ("0.0", "0.01"), ("1.4", "0.7"))).findings == ()


def test_a_policy_s_loss_swings_around_nothing(watch: Watch) -> None:
    swings = [("0.0003", "0.1"), ("-0.0002", "0.2"), ("0.0", "0.1"), ("0.0007", "0.1")]
    text = "".join(RECORD % (*each, at) for at, each in enumerate(swings * 8, 1))
    assert watch(text).findings == ()
    assert watch(text + RECORD % ("0.9", "31.0", 40)).findings != ()


def test_the_next_loop_begins_high_and_a_sum_rises(watch: Watch) -> None:
    text = log() + "".join(RECORD % ("31.0", "0.7", at) for at in range(1, 12))
    assert watch(text).findings == ()
    sums = "".join(RECORD % (f"{0.7 * at:.1f}", "0.7", at) for at in range(1, 40))
    assert watch(sums).findings == ()


def test_ranks_that_lag_behind_each_other_share_one_loop(watch: Watch) -> None:
    line = "[rank{}]: mmdet - INFO - Epoch [{}][{}/12]\tlr: 3.0e-03, eta: 0:31:00, loss: {}\n"
    losses = ["1.91", "1.87", "1.94"] * 12
    lagging = [(0, at + 1) for at in range(35)], [(1, at) for at in range(35)]
    printed = [each for pair in zip(*lagging, strict=True) for each in pair]
    text = "".join(line.format(rank, at // 12 + 1, at % 12 + 1, losses[at]) for rank, at in printed)
    assert watch(text).findings == ()
    assert watch(text + line.format(0, 4, 1, "23.1")).findings != ()


def test_lines_that_name_their_step_stand_above_the_others(watch: Watch) -> None:
    steps = "".join(
        f"step: {at}  loss: 2.01  grad_norm: 0.9\n{RECORD % ('9.1', '0.7', at)}" for at in range(1, 30)
    )
    assert watch(log() + steps).findings == ()
    assert watch(steps + "step: 41  loss: 7.9  grad_norm: 3.1\n").findings != ()
