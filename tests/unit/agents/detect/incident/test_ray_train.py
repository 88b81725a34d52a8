"""Ray Train restarts its workers within one driver: what it got over is no end, and a restart no hang."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.incident.scene import Scene

ASSERT = "RuntimeError: CUDA error: device-side assert triggered"
NCCL = "RuntimeError: NCCL error: remote process exited or there was a network error"


def failed_at(step: int, error: str, worker: int) -> str:
    return (
        f"(RayTrainWorker pid={worker}) step {step}/10 | loss 1.5\n"
        f"(RayTrainWorker pid={worker}) Error in training function:\n"
        f"(RayTrainWorker pid={worker}) Traceback (most recent call last):\n"
        f'(RayTrainWorker pid={worker})   File "toy.py", line 7, in train\n'
        f"(RayTrainWorker pid={worker}) {error}\n"
    )


def decided(word: str, count: int, error: str) -> str:
    echo = "[repeated 2x across cluster]"
    return (
        f"(TrainController pid=7) [FailurePolicy] {word}\n"
        f"(TrainController pid=7)   Error count: {count} (max allowed: 1)\n"
        "(TrainController pid=7) Error: Training failed due to worker errors:\n"
        "(TrainController pid=7) Attempting to start training worker group of size 2 with the following\n"
        f"(TrainController pid=7) Traceback (most recent call last):{echo}\n"
        f"(TrainController pid=7) {error}{echo}\n"
    )


LAST = (
    "Traceback (most recent call last):\n"
    '  File "toy.py", line 40, in <module>\n'
    "ray.train.WorkerGroupError: Training failed due to worker errors:\n"
    "[Rank 1 Error Snippet]:\n"
    "Traceback (most recent call last):\n"
    '  File "toy.py", line 7, in train\n'
)


def test_a_run_that_ray_train_brought_over_a_failure_is_healthy(watch: Watch) -> None:
    done = watch(
        failed_at(3, ASSERT, 20)
        + decided("RETRY", 1, ASSERT)
        + "".join(f"(RayTrainWorker pid=30) step {step}/10 | loss 1.5\n" for step in range(3, 11))
    )
    assert (done.verdict.state, done.decision.action) == ("healthy", "none")


@pytest.mark.parametrize(("second", "action"), [(NCCL, "restart"), (ASSERT, "stop")])
def test_once_its_failures_ran_out_the_last_failure_is_the_root(
    watch: Watch, second: str, action: str
) -> None:
    """Even at the step of the first, of whose line Ray prints a copy later."""
    first = ASSERT if second is NCCL else NCCL
    done = watch(
        failed_at(3, first, 20)
        + decided("RETRY", 1, first)
        + failed_at(3, second, 30)
        + decided("RAISE", 2, second)
        + LAST
        + second
        + "\n"
    )
    assert done.verdict.root_line.endswith(second)
    assert "pid=20" not in done.verdict.root_line
    assert done.decision.action == action


def test_the_start_of_workers_anew_has_the_patience_of_a_start() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.line("torch")
    scene.progress(-1, phase="startup", rule="ray_train_workers_start")
    scene.beats(seconds=280)
    assert scene.settled() == []
    scene.beats(seconds=30)
    assert [i.verdict.mode for i in scene.settled()] == ["stall"]
