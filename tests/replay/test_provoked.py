"""Failures that we provoked, and noisy runs that did well: each log has the verdict that its cause asks for.

`provoked/` holds what our own programs printed, one labelled log a line, in the format of `midwatch rules
score`. The cause is known by construction, so a label is no opinion. Two ranks and more of PyTorch 2.15 on
gloo with Lightning, Transformers, Accelerate and DeepSpeed; JAX 0.10, TensorFlow, Ray, MPI, boosters and
batch scripts; one H200 with PyTorch 2.11, Triton, CuPy and CUDA, and jobs of nvidia-resiliency-ext 0.7,
DeepSpeed 0.19, TRL 1.16, JAX 0.11 and Lightning on another; SLURM 22.05; many ranks of each under
faults of memory, disks, files and peers; and stores, hubs, trackers and networks that go away.
Only folders and names were changed, and the middle of a long log may be left out.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from midwatch.agents.cli.rules.score import judge_of_logs
from midwatch.agents.replay.scoring import Labelled, leniently, mistakes, read_labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from midwatch.agents.replay.scoring import Prediction

FILES = sorted((Path(__file__).parent / "provoked").glob("*.jsonl"))

# What midwatch does not see, and why. A mend takes its line away, for the test then fails.
MISSED = {
    "vision-hang-stop": "a log that stops between two steps shows no failure; the watch sees the silence",
    "g75-hang-kernel": "the same",
    "jax-prefetch-stall": "the same",
    "g28-cublas-alloc-full": "an entropy that is no number in each step is a measure like others",
    "g42-nccl-watchdog": "a kernel that blocks the stream looks like a lost rank: it is restarted",
    "mpi-pipe-deadlock": "the program's own timer fires in a deadlock by construction: it is restarted",
    "elastic-store-node-lost": "the file of this node shows no step, so nothing shows that the start works",
    "jax-coordinator-lost": "the same",
    "slurm-step-launch-node-gone": "a stage had reported success, and that is not run again by itself",
    "slurm-controller-away": "the same",
    "dataworker-bus-error-late": "a bus error is mostly a full /dev/shm, and the log tells no other reason",
    "torchrun-rank-bus-error": "the same",
    "shard-reader-stuck": "a log that stops between two steps shows no failure",
    "ddp-lr-jump-loss-spike": "the run reports its end, so nobody asks whether its loss came back",
    "feeder-trainer-lock-cycle": "the two stacks that wait for each other are read as a hang",
    "lightgbm-two-workers-one-lost": "LightGBM's callback prints rounds that are no known step",
    "tf-multiworker-peer-reset": "the shell's word `Killed` is mostly the kernel's, for memory",
    "torchrun-store-host-lost": "the first broken link is named, not the store that was lost with it",
    "jax-coordinator-lost-again": "the same: the coordination service's word stands first",
    "ps-pair-server-lost": "a pipe of multiprocessing mostly leads to a child, whose own error is the cause",
    "nvrx-03-heartbeat-hang": "two ranks print their last line in one moment, and the other's was taken",
    "nvrx-11-section-timeout": "the same",
    "nvrx-13-exit-code-3": "its last words before it exits hold no exception, so the launcher's are taken",
    "hf-bert-eval-sidecar-dies": "a child's assert, and only a later line says that the training goes on",
    "pipeline-optional-export": "only the heading of the stage that failed says that it is optional",
    "g124-eval-undefined-metrics": "`loss: nan for absent classes is expected` reads like a loss",
}


def _rows() -> Iterator[Labelled]:
    for file in FILES:
        lines = file.read_text("utf-8").split("\n")
        rows = (
            (number, msgspec.json.decode(line, type=dict[str, object]))
            for number, line in enumerate(lines, 1)
            if line
        )
        yield from read_labelled(rows, str(file))


ROWS = {row.id: row for row in _rows()}


@cache
def _judge() -> Callable[[str], Prediction]:
    return judge_of_logs()


def _case(name: str) -> object:
    why = MISSED.get(name)
    return pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=why) if why else ())


@pytest.mark.parametrize("name", [_case(name) for name in ROWS])
def test_a_provoked_end_has_its_verdict(name: str) -> None:
    row = ROWS[name]
    assert mistakes(leniently([(row, _judge()(row.log))])) == []


def test_each_log_has_its_own_name_and_each_root_stands_in_its_log() -> None:
    assert len(ROWS) == sum(1 for _ in _rows())
    assert MISSED.keys() <= ROWS.keys()
    for row in ROWS.values():
        lines = [part.strip() for line in row.log.split("\n") for part in (line, line.rpartition("\r")[2])]
        assert not row.failed or row.root_line in lines, row.id
