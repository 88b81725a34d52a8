"""A training under Ray Train with two workers, run by Ray's own Python: `ray_train.py DIRECTORY`.

It saves every second step, resumes where Ray or midwatch says, and prints its steps. Its first start fails
twice: at step 3 a worker raises, and Ray Train restarts the workers itself. At step 6 rank 1 is lost while it
saves, when rank 0 has saved its part; by then no failure is allowed any more.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ray.train
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

STEPS = 10
FIRST_FAULT = "CUDA error: device-side assert triggered"  # the same start would fail again
LAST_FAULT = "NCCL error: remote process exited or there was a network error"


def lost_while_it_saves(_: Checkpoint, name: str) -> Checkpoint:
    """Saves nothing, and fails once rank 0 has saved its part."""
    run = Path(os.environ["RUN"])
    while not (run / name / "rank_0.bin").exists():
        time.sleep(0.05)  # between two looks at the file
    raise RuntimeError(LAST_FAULT)


def train(config: dict[str, Any]) -> None:
    rank, first = ray.train.get_context().get_world_rank(), 1
    told = os.environ.get("MIDWATCH_RESUME_FROM")
    if checkpoint := ray.train.get_checkpoint() or (told and Checkpoint(told)):
        with checkpoint.as_directory() as folder:
            first = json.loads(Path(folder, "state.json").read_text())["step"] + 1
    mark = Path(config["directory"], "failed-at-3")
    for step in range(first, STEPS + 1):
        if rank == 0:
            print(f"step {step}/{STEPS} | loss 1.5", flush=True)
        if step == 3 and rank == 1 and not mark.exists():
            mark.touch()
            raise RuntimeError(FIRST_FAULT)
        time.sleep(0.05)  # a step's work
        if step % 2 == 0:
            torn = step == 6 and rank == 1 and not told
            with tempfile.TemporaryDirectory() as place:
                Path(place, f"rank_{rank}.bin").write_bytes(b"weights")
                if rank == 0:
                    Path(place, "state.json").write_text(json.dumps({"step": step}))
                ray.train.report(
                    {"step": step, "loss": 1.5},
                    checkpoint=Checkpoint.from_directory(place),
                    checkpoint_upload_fn=lost_while_it_saves if torn else None,
                )


def main() -> None:
    os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = "0.2"  # between two looks at the workers
    os.environ["RAY_TRAIN_ENABLE_PREEMPTION_WATCHER"] = "0"  # a process that looks for nodes that drain
    directory = Path(sys.argv[1])
    name = f"run-{os.environ.get('MIDWATCH_ATTEMPT', '1')}"
    with (directory / "starts").open("a") as notes:
        notes.write(f"{os.environ.get('MIDWATCH_RESUME_FROM', '')}\n")
    ray.init(runtime_env={"env_vars": {"RUN": str(directory / "storage" / name)}})
    DataParallelTrainer(
        train,
        train_loop_config={"directory": str(directory)},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(
            name=name,
            storage_path=str(directory / "storage"),
            failure_config=FailureConfig(max_failures=1),
        ),
    ).fit()
    print("training is done", flush=True)


if __name__ == "__main__":
    main()
