"""A training under Ray Train that keeps its checkpoints on S3: `ray_train_on_s3.py NOTES STORAGE_URL`.

Ray's own Python runs it. It saves every second step, resumes where midwatch says, and prints its steps. Its
first start is lost at step 6: the weights of that checkpoint have reached the store, the state has not.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.fs
import ray.train
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

STEPS = 10
FAULT = "NCCL error: remote process exited or there was a network error"


def lost_while_it_saves(checkpoint: Checkpoint, name: str) -> Checkpoint:
    """Sends one of two files to the store, and fails."""
    store, run = pyarrow.fs.FileSystem.from_uri(os.environ["RUN"])
    with checkpoint.as_directory() as folder, store.open_output_stream(f"{run}/{name}/rank_0.bin") as file:
        file.write(Path(folder, "rank_0.bin").read_bytes())
    raise RuntimeError(FAULT)


def train(_: dict[str, Any]) -> None:
    first, told = 1, os.environ.get("MIDWATCH_RESUME_FROM")
    if told:
        with Checkpoint(told).as_directory() as folder:
            first = json.loads(Path(folder, "state.json").read_text())["step"] + 1
    for step in range(first, STEPS + 1):
        print(f"step {step}/{STEPS} | loss 1.5", flush=True)
        if step % 2 == 0:
            torn = step == 6 and not told
            with tempfile.TemporaryDirectory() as place:
                Path(place, "rank_0.bin").write_bytes(b"weights")
                Path(place, "state.json").write_text(json.dumps({"step": step}))
                ray.train.report(
                    {"step": step, "loss": 1.5},
                    checkpoint=Checkpoint.from_directory(place),
                    checkpoint_upload_fn=lost_while_it_saves if torn else None,
                )


def main() -> None:
    os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = "0.2"  # between two looks at the workers
    os.environ["RAY_TRAIN_ENABLE_PREEMPTION_WATCHER"] = "0"  # a process that looks for nodes that drain
    notes, storage = Path(sys.argv[1]), sys.argv[2]
    name = f"run-{os.environ.get('MIDWATCH_ATTEMPT', '1')}"
    with notes.open("a") as file:
        file.write(f"{os.environ.get('MIDWATCH_RESUME_FROM', '')}\n")
    ray.init(runtime_env={"env_vars": {"RUN": f"{storage}/{name}"}})
    DataParallelTrainer(
        train,
        train_loop_config={},
        scaling_config=ScalingConfig(num_workers=1),
        run_config=RunConfig(name=name, storage_path=storage),
    ).fit()
    print("training is done", flush=True)


if __name__ == "__main__":
    main()
