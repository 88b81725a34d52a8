"""A saved log that ends in a spike of the loss has a verdict. One that came back or wobbles has none."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.replay.endings.open_spike import Losses
from midwatch.streams.records import Hits, Origin, Progress
from unit.agents.conftest import Watch


def megatron(step: int, loss: float | None) -> str:
    shown = "" if loss is None else f"lm loss: {loss:.6E} | "
    return (
        f" iteration {step:8d}/    9000 | consumed samples: {step * 16:12d} | elapsed time per "
        f"iteration (ms): 95.0 | learning rate: 1.500E-05 | global batch size:    16 | {shown}"
        "loss scale: 4096.0 | grad norm: 1.942 | num zeros: 0.0 | number of skipped iterations:   0 | "
        "number of nan iterations:   0 |"
    )


def log(*losses: float | None) -> str:
    return "\n".join(megatron(step, loss) for step, loss in enumerate(losses, 1)) + "\n"


@pytest.mark.parametrize(
    ("losses", "first"),
    [
        ((2.0, 2.1, 6.0), 3),
        ((5.0, 5.2, 5.9, 8.0, 9.0), 4),
        ((1.5, 1.501, 2.6, 2.6, 2.7, 2.7), 3),
    ],
)
def test_an_open_spike_is_the_verdict(watch: Watch, losses: tuple[float, ...], first: int) -> None:
    done = watch(log(*losses))
    assert (done.verdict.state, done.verdict.error_type) == ("failed", "loss_spike")
    assert done.verdict.root_line_number == first
    assert done.verdict.root_line == megatron(first, losses[first - 1])
    assert done.decision.action == "hold"
    assert f"since step {first}" in done.decision.reason


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_ranks_that_each_print_the_loss_of_all_hide_no_spike(watch: Watch, lag: int) -> None:
    losses = (2.3, 2.2, 2.25, 2.1, 2.0, 2.1, 6.0, 6.2, 6.1)
    steps = range(1, len(losses) + 1 + lag)
    printed = [
        f"{rank}: {megatron(step, losses[step - 1])}\n"
        for turn in steps
        for rank, step in enumerate((turn, turn, turn - lag))
        if 1 <= step <= len(losses)
    ]
    done = watch("".join(printed))
    assert done.verdict.error_type == "loss_spike"
    assert done.verdict.root_line == f"0: {megatron(7, losses[6])}"


def test_a_loss_that_is_high_and_then_no_longer_printed_is_broken_numbers(watch: Watch) -> None:
    done = watch(log(2.0, 2.1, 2.2, 5.0, 3.0, 5.2, 5.1, None))
    assert done.verdict.error_type == "numerical_instability"
    assert done.verdict.root_line == megatron(8, None)


NO_NUMBER = "number of nan iterations:   1"


def test_a_loss_that_is_no_longer_printed_is_broken_where_megatron_counts_what_is_no_number(
    watch: Watch,
) -> None:
    vanished = [megatron(step, None).replace(NO_NUMBER.replace("1", "0"), NO_NUMBER) for step in (4, 5)]
    done = watch(log(2.3, 2.2, 2.1) + "\n".join(vanished) + "\n")
    assert (done.verdict.error_type, done.decision.action) == ("numerical_instability", "hold")
    assert done.verdict.root_line == vanished[0]
    assert watch(log(2.3, 2.2, 2.1) + vanished[0] + "\n").verdict.state == "healthy"
    assert watch(log(2.3, 2.2, 2.1, None, None)).verdict.state == "healthy"
    assert (
        watch(log(2.3, 2.2, 2.1) + "\n".join(vanished) + "\n" + megatron(6, 2.1)).verdict.state == "healthy"
    )


@pytest.mark.parametrize(
    ("text", "behind", "state"),
    [
        ("the toy switches to stage 2: longer wheels", (3.6, 3.5, 3.4), "healthy"),
        ("=== Phase 2 ===", (3.6, 3.5, 3.4), "healthy"),
        ("the toy switches to stage 2: longer wheels", (3.6, 3.7, 3.4), "failed"),
        ("the toy is saved at this stage", (3.6, 3.5, 3.4), "failed"),
        ("Epoch 1/70", (3.6, 3.7, 3.4), "healthy"),
        ("Epoch 7/70", (3.6, 3.7, 3.4), "failed"),
    ],
)
def test_the_next_stage_starts_at_its_own_loss_and_falls(
    watch: Watch, text: str, behind: tuple[float, ...], state: str
) -> None:
    first = (2.4, 2.39, 2.38, 2.37)
    *before, rest = log(*first, *behind).split("\n", len(first))
    assert watch("\n".join([*before, text, rest])).verdict.state == state


@pytest.mark.parametrize(
    "losses",
    [
        (11.0, 8.0, 6.0, 5.0, 4.5),
        (1.5, 1.6, 3.0, 1.6, 1.5),
        (2.1, 3.0, 1.9, 3.1, 2.0, 3.2),
        (2.4, 2.3, None),
        (2.4, 3.4),
    ],
)
def test_a_loss_that_falls_comes_back_or_wobbles_is_healthy(
    watch: Watch, losses: tuple[float | None, ...]
) -> None:
    done = watch(log(*losses))
    assert (done.verdict.state, done.decision.action) == ("healthy", "none")


def epochs(*losses: float, first: int = 1) -> str:
    return "".join(
        f"epoch: {n}/100, train_loss: {loss:.4f}, lr 0.1\n" for n, loss in enumerate(losses, first)
    )


def test_the_next_fold_starts_at_its_own_high_loss(watch: Watch) -> None:
    fold = (6.8, 2.1, 1.2, 0.9, 0.8, 0.7, 0.65, 0.63)
    assert watch(epochs(*fold) + epochs(6.8)).verdict.state == "healthy"
    assert watch(epochs(*fold) + epochs(6.8, 6.5)).verdict.state == "healthy"


def test_the_next_training_in_a_file_of_json_starts_at_its_own_high_loss(watch: Watch) -> None:
    first = [f'{{"train_loss": {6.9 / (1 + epoch / 5):.4f}, "epoch": {epoch}}}\n' for epoch in range(21)]
    assert watch("".join([*first, *first[:2]])).verdict.state == "healthy"
    spike = first[20].replace('"epoch": 20', '"epoch": 21').replace("1.3800", "6.9000")
    assert watch("".join([*first, spike, spike.replace("21", "22")])).verdict.error_type == "loss_spike"


def test_the_next_training_starts_where_the_batches_of_its_first_epoch_count_anew(watch: Watch) -> None:
    def toys(*losses: float) -> str:
        lines = (f"\titers: {50 * n}, epoch: 1 | loss: {loss:.7f}\n" for n, loss in enumerate(losses, 1))
        return "".join(lines)

    low = toys(0.21, 0.2, 0.19, 0.2, 0.18)
    assert watch(low + toys(1.8, 1.5, 1.4)).verdict.state == "healthy"
    assert watch(low + toys(0.2, 0.19, 0.2, 0.19, 1.9, 1.8, 1.9)).verdict.error_type == "loss_spike"


def test_a_spike_in_the_next_fold_or_after_a_resumption_is_the_verdict(watch: Watch) -> None:
    fold = (6.8, 2.1, 1.2, 0.9, 0.8, 0.7, 0.65, 0.63)
    again = watch(epochs(*fold) + epochs(*fold, 9.0, 9.1))
    resumed = watch(epochs(*fold) + epochs(9.0, 9.1, first=7))
    assert [each.verdict.error_type for each in (again, resumed)] == ["loss_spike", "loss_spike"]


def test_steps_to_quite_another_end_are_of_another_run(watch: Watch) -> None:
    def run(first: int, end: int, *losses: float) -> str:
        steps = enumerate(losses, first)
        return "".join(f"[TRAIN] iter: {step}/{end}, loss: {loss:.4f}, ips: 2.7\n" for step, loss in steps)

    begun = run(10, 1000, 0.21, 0.22, 0.21, 0.2, 0.22)
    assert watch(begun + "[...]\n" + run(7000, 50000, 0.8, 0.9, 0.81)).verdict.state == "healthy"
    assert watch(begun + run(15, 1000, 0.8, 0.9, 0.81)).verdict.error_type == "loss_spike"


def test_the_second_day_of_a_month_is_no_other_end(watch: Watch) -> None:
    def day(number: int, first: int, *losses: float) -> str:
        steps = enumerate(losses, first)
        return "".join(
            f"[03/0{number} 11:52:40 toy] step: {step}  loss: {loss:.4f}\n" for step, loss in steps
        )

    log = day(1, 1, 0.21, 0.22, 0.21, 0.2, 0.22) + day(2, 6, 0.8, 0.9, 0.81)
    assert watch(log).verdict.error_type == "loss_spike"


@pytest.mark.parametrize(
    ("word", "state"),
    [("EVALUATING - Epoch", "healthy"), ("Evaluating - Epoch", "healthy"), ("TRAINING - Epoch", "failed")],
)
def test_the_loss_of_an_evaluation_is_none_of_the_training(watch: Watch, word: str, state: str) -> None:
    line = "02-03-26 10:00:00 - INFO - {}: [3][{}/97]\tTime 0.092 (0.100)\tLoss {:.4f} ({:.4f})\n"
    trained = "".join(line.format("TRAINING - Epoch", n, 0.0171, 0.0171) for n in range(0, 90, 10))
    assert watch(trained + line.format(word, 90, 0.36, 0.41)).verdict.state == state


def keras(*losses: float) -> str:
    return "".join(
        f"Epoch {n}/{len(losses)}\n90/90 - 1s - 9ms/step - accuracy: 0.8100 - loss: {loss:.4f}\n"
        for n, loss in enumerate(losses, 1)
    )


LAYERS = "".join(f" dense_{n} (Dense)    (None, 64)    4160\n" for n in range(40))
FALLS = (0.61, 0.31, 0.22, 0.17, 0.14, 0.12, 0.11, 0.105)


@pytest.mark.parametrize("losses", [(2.4,), (2.4, 1.9), (2.4, 1.9, 1.6, 1.5)])
def test_the_next_model_of_keras_starts_at_its_own_high_loss(watch: Watch, losses: tuple[float, ...]) -> None:
    assert watch(keras(*FALLS) + LAYERS + keras(*losses)).verdict.state == "healthy"


REDRAWN = "Epoch {0}: 100%|##########| 126/126 [00:05<00:00, 22.10it/s, loss={1:.4f}, v_num=1]\n"


def test_a_bar_that_is_drawn_once_more_when_it_is_closed_shows_no_second_loss(watch: Watch) -> None:
    trained = "".join(REDRAWN.format(n, 0.0120 + n % 3 * 0.002) for n in range(12))
    high = REDRAWN.format(12, 0.0320)
    assert watch(trained + high + high).verdict.state == "healthy"
    assert watch(trained + high + REDRAWN.format(13, 0.0330)).verdict.error_type == "loss_spike"


def test_the_validation_loss_in_a_bar_is_none_of_the_training(watch: Watch) -> None:
    bar = "Epoch {}: 100%|###| 28/28 [00:04<00:00,  6.16it/s, v_num=4, val_loss={:.3f}, train_loss={:.3f}]\n"
    overfits = "".join(bar.format(n, 0.6 if n < 8 else 1.9, 0.5 - n / 50) for n in range(12))
    assert watch(overfits).verdict.state == "healthy"
    diverges = "".join(bar.format(n, 0.6, 0.3 if n < 8 else 1.9) for n in range(12))
    assert watch(diverges).verdict.error_type == "loss_spike"


def test_a_loss_that_each_drawing_of_the_next_epoch_shows_again_counts_once(watch: Watch) -> None:
    bar = "Epoch {}:  {}0%|###  | {}0/90 [00:04<00:00,  6.16it/s, v_num=4, train_loss={:.3f}]\n"
    losses = (0.30, 0.20, 0.14, 0.10, 0.12, 0.07, 0.11, 0.08, 0.14)
    drawn = "".join(bar.format(n, k, k, loss) for n, loss in enumerate(losses) for k in range(1, 9))
    assert watch(drawn).verdict.state == "healthy"
    high = "".join(bar.format(9, k, k, 2.4) for k in range(1, 9))
    assert watch(drawn + high).verdict.error_type == "loss_spike"


def test_a_spike_far_below_the_first_loss_is_no_divergence(watch: Watch) -> None:
    falls = tuple(2.0 / 2**step for step in range(9))
    assert watch(log(*falls, 0.05, 0.06)).verdict.state == "healthy"
    assert watch(log(*falls, 0.5, 0.6)).verdict.error_type == "loss_spike"


def test_a_measure_that_climbs_evenly_is_no_spike(watch: Watch) -> None:
    assert watch(log(*(0.5 + 0.5 * step for step in range(40)))).verdict.state == "healthy"


BROKEN = log(2.0, 2.1, 2.0, 2.1, 6.0, 6.1)


@pytest.mark.parametrize(
    ("behind", "state"),
    [
        ("Training finished, best epoch 3\n", "healthy"),
        ("2026-03-02 10:00:00 - __main__ - INFO - Training completed successfully!\n", "healthy"),
        ("2026-03-02 10:00:00 - INFO - All runs complete. The toys are in /toy\n", "healthy"),
        ("finished training of fold 1\n", "healthy"),
        ("".join(f"toy {n} is read\n" for n in range(80)), "healthy"),
        ("the training is kept under watch\n", "failed"),
        ("".join(f"toy {n} is read\n" for n in range(20)), "failed"),
    ],
    ids=[
        "finished",
        "completed",
        "all runs",
        "of a fold",
        "goes on for long",
        "other words",
        "goes on for a while",
    ],
)
def test_a_spike_is_open_only_at_the_end_of_a_log(watch: Watch, behind: str, state: str) -> None:
    assert watch(BROKEN + behind).verdict.state == state


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("Validation loss decreased (0.771 --> 0.752).  Saving the toy ...\n", "healthy"),
        ("Epoch 00003: val_loss improved from 0.771 to 0.752, saving toy.h5\n", "healthy"),
        ("Validation loss decreased (inf --> 0.752).  Saving the toy ...\n", "failed"),
        ("the loss decreased by the toy\n", "failed"),
    ],
)
def test_an_evaluation_that_was_never_better_ends_a_spike(watch: Watch, told: str, state: str) -> None:
    lines = BROKEN.splitlines(keepends=True)
    assert watch("".join([*lines[:-1], told, lines[-1]])).verdict.state == state
    assert watch("".join([*lines[:3], told, *lines[3:]])).verdict.state == "failed"


def test_the_next_run_of_one_epoch_starts_at_its_own_high_loss(watch: Watch) -> None:
    epoch = "TRAINING - Epoch: [1][{}/40] Time 0.040 (0.040) Loss {:.4f} ({:.4f})\n"
    fold = "".join(epoch.format(n, loss, loss) for n, loss in enumerate((2.3, 1.6, 1.2, 1.1, 1.05, 1.0)))
    later = fold.replace("[1][", "[2][")
    assert (
        watch(fold + later.replace("2.3000", "0.9000") + fold[: fold.find("\n") + 1]).verdict.state
        == "healthy"
    )


@pytest.mark.parametrize(
    "text",
    [
        keras(*FALLS, 2.4, 2.2),
        keras(*FALLS) + LAYERS[:200] + keras(2.4, 2.2),
        keras(*FALLS) + LAYERS + keras(2.4, 2.6),
        keras(*FALLS) + LAYERS + keras(*FALLS, 2.4, 2.2),
    ],
    ids=["no other text", "little other text", "rises behind it", "falls, then a spike"],
)
def test_a_spike_of_keras_is_the_verdict(watch: Watch, text: str) -> None:
    assert watch(text).verdict.error_type == "loss_spike"


def column(losses: list[str]) -> Hits:
    numbers = tuple(range(1, len(losses) + 1))
    progress = Progress(
        path="log",
        generation="g",
        rule="loop",
        phase="training",
        steps=numbers,
        ends=numbers,
        numbers=numbers,
        times=tuple(0.0 for _ in numbers),
        losses=tuple(losses),
    )
    origin = Origin(job="toy", incarnation="1", shipper="s", node="n", nodes=1, boot_id="b")
    return Hits(origin=origin, bundle="b", progress=(progress,))


@given(st.floats(0.1, 10), st.floats(0.0, 0.3), st.integers(0, 2**16))
def test_noise_around_one_level_is_no_spike(level: float, noise: float, seed: int) -> None:
    chance = random.Random(seed)
    losses = Losses()
    losses.take(column([f"{level * (1 + chance.uniform(-noise, noise) / 3):.6f}" for _ in range(80)]))
    assert losses.open_spikes() == []


@given(st.lists(st.sampled_from(["", "nan", "inf", "1.5", "x", "-2", "1e30"]), max_size=40))
def test_any_column_is_read(losses: list[str]) -> None:
    kept = Losses()
    kept.take(column(losses))
    kept.open_spikes()


@pytest.mark.parametrize(
    "head", ["INFO train: step {} loss {}", "INFO:train:step {} loss={}", "INFO toy: step {} loss {}"]
)
def test_a_logger_called_train_prints_losses_as_any_other(watch: Watch, head: str) -> None:
    calm = "".join(head.format(step, 2.0 + step % 2 / 10) + " lr 0.1\n" for step in range(1, 400))
    high = "".join(head.format(step, 9.8) + " lr 0.1\n" for step in range(400, 500))
    assert [finding.kind for finding in watch(calm + high).findings] == ["loss_spike"]
    assert watch(calm).findings == ()


def test_the_loss_of_a_validation_behind_the_step_is_none_of_the_training(watch: Watch) -> None:
    steps = "".join(f"INFO train: step {n} validation loss 2.0\n" for n in range(1, 400))
    assert watch(steps + steps.replace("2.0", "9.8").replace("step ", "step 1")).findings == ()


@pytest.mark.parametrize(
    ("end", "state"),
    [
        ("Evaluation:\nstep 70, loss 1.7, acc 0.4\n", "healthy"),
        ("step 70, loss 1.7, acc 0.4\n", "healthy"),
        ("Validation:\nstep 71, loss 1.7, acc 0.4\n", "healthy"),
        ("step 71, loss 1.7, acc 0.4\n", "failed"),
        ("step 70, loss 1.7, acc 0.4\nstep 71, loss 1.8, acc 0.4\n", "failed"),
    ],
)
def test_an_evaluation_that_prints_as_the_training_does_shows_no_spike(
    watch: Watch, end: str, state: str
) -> None:
    steps = "".join(f"step {n}, loss 0.00{n % 7 + 1}, acc 1\n" for n in range(1, 71))
    assert watch(f"{steps}\n{end}\n").verdict.state == state


@pytest.mark.parametrize(("word", "state"), [("valid", "healthy"), ("Dev", "healthy"), ("train", "failed")])
def test_the_loss_of_an_evaluation_each_epoch_climbs_where_a_model_overfits(
    watch: Watch, word: str, state: str
) -> None:
    line = "toy.py:train: [Epoch {}] {} loss={:.4f}, acc=0.86\n"
    losses = (0.51, 0.45, 0.42, 0.41, 0.40, 0.405, 0.41, 0.415, 0.62, 0.66, 0.71)
    assert watch("".join(line.format(n, word, loss) for n, loss in enumerate(losses))).verdict.state == state


def episodes(*losses: float) -> str:
    return "".join(
        f"episode={n} step={n * 31} reward=77.0 epsilon=0.98 loss={x:.4f}\n" for n, x in enumerate(losses)
    )


def test_an_agent_that_fills_its_memory_first_has_no_loss_until_then(watch: Watch) -> None:
    none = float("nan")
    assert watch(episodes(none, none, none, 0.74, 0.96, 0.63)).verdict.state == "healthy"
    assert watch(episodes(0.74, 0.96, none, none, none, none)).verdict.error_type == "numerical_instability"


def test_the_loss_of_an_agent_may_rise_as_it_learns(watch: Watch) -> None:
    assert watch(episodes(*[0.31, 0.32, 0.3, 0.31] * 4, 0.9, 1.1, 1.4)).verdict.state == "healthy"


def test_a_line_of_each_epoch_that_never_had_a_loss_shows_no_broken_one(watch: Watch) -> None:
    epoch = "Epoch {0} Train Loss: {1:.4f}\nEpoch: {0} True Loss: {2:.4f}\nEpoch: {0} Val Acc: 0.435\n"
    text = "".join(epoch.format(n, 251.0 - n / 9, 438.0 - n % 3) for n in range(1, 90))
    assert watch(text).verdict.state == "healthy"


def test_a_single_high_loss_is_no_spike_where_such_losses_came_back_before(watch: Watch) -> None:
    calm = (6.95, 6.94, 6.96, 6.93, 6.95)
    assert watch(log(*calm, 18.2, *calm, 37.4, *calm, 13.1)).verdict.state == "healthy"
    assert watch(log(*calm, *calm, *calm, 13.1)).verdict.error_type == "loss_spike"
    assert watch(log(*calm, 18.2, *calm, 13.1, 13.9, 14.2)).verdict.error_type == "loss_spike"
