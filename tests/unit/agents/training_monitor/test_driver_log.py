"""What a driver's lines tell the training monitor."""

from __future__ import annotations

import pytest

from midwatch.agents.training_monitor.driver_log import last_step, last_throughput, transport

STEPS = {
    "step 12/500 | loss 1.5": 12,
    "[2026-01-02 03:04:05] iteration       15/      40 | consumed samples: 60 | lm loss: 2.1E+00": 15,
    "step:12 - global_seqlen/min:1024 - actor/entropy:0.5": 12,
    "{'loss': 0.4, 'global_step': 77, 'epoch': 1.5}": 77,
    '{"train_step": 9}': 9,
    "Step: 4,502 (validation loop)": 4502,
    " 41%|####      | 410/1000 [12:01<17:20,  1.76s/it]": 410,
    "Iteration [30], loss 2.0": 30,
    "step 7, loss 0.1": 7,
}
NO_STEPS = [
    "loss 1.5",
    "step_time: 0.5",
    "max_steps: 1000",
    "saved to /ckpt/step_10",
    "step time 12",
    "step 12.5 s",
    "elapsed time per iteration (ms): 513.1",
]


@pytest.mark.capability("S002-02", "S002-20")
@pytest.mark.parametrize("line", STEPS)
def test_the_step_of_a_line(line: str) -> None:
    assert last_step(f"step 1\n{line}\nsome other line") == STEPS[line]


@pytest.mark.parametrize("line", NO_STEPS)
def test_a_line_without_a_step(line: str) -> None:
    assert last_step(line) is None


RATES = {
    "142k tokens/sec": (142_000.0, "tokens/s"),
    "step 3 | 1,200.5 samples/s": (1200.5, "samples/s"),
    "'tokens_per_sec': 99": (99.0, "tokens/s"),
    "tokens/s: 142k": (142_000.0, "tokens/s"),
    "1.76it/s": (1.76, "it/s"),
}


@pytest.mark.capability("S002-03")
@pytest.mark.parametrize("line", RATES)
def test_the_throughput_of_a_line(line: str) -> None:
    found = last_throughput(f"{line}\nanother")
    assert found is not None
    assert (found.value, found.unit) == RATES[line]


def test_lines_without_a_throughput() -> None:
    assert last_throughput("step 3 | loss 1.5\n1.76s/it") is None


@pytest.mark.capability("S002-12", "S002-13")
@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("h:1:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)", "efa"),
        ("h:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>", "socket"),
        ("h:1:1 [0] NCCL INFO Using network Socket", "socket"),
        ("h:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE", "ib"),
        ("EFA device present and ACTIVE", ""),
    ],
)
def test_the_transport_that_nccl_uses(line: str, word: str) -> None:
    assert transport(["x", line]).word == word


def test_one_rank_on_sockets_outweighs_all_on_efa() -> None:
    efa, socket = "NET/OFI Selected provider is efa", "NET/Socket : Using [0]eth0"
    assert transport([efa, socket, efa]).word == "socket"
