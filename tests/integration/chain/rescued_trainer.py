"""A training that is steered by a YAML file, and whose validation needs a small batch.

It saves `step_N` with a link `latest` beside it, validates at step 10, and loads what `resume_from` names.
"""

import argparse
import sys
import time
from pathlib import Path

import yaml

VALIDATED_AT, STEPS, FITS = 10, 14, 16


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path)
    config = yaml.safe_load(parser.parse_args().config.read_text())
    directory = Path(config["output"])
    directory.mkdir(parents=True, exist_ok=True)
    resumed = config["resume_from"]
    first = int(Path(resumed).name.removeprefix("step_")) + 1 if resumed else 1
    with (directory / "starts").open("a") as notes:
        notes.write(f"{first} {config['data']['val_batch_size']}\n")
    for step in range(first, STEPS + 1):
        print(f"step {step}/{STEPS} | loss {2 - step / 100:.4f}", flush=True)
        time.sleep(config["seconds_a_step"])  # a step's work
        if step % 5 == 0 and step < VALIDATED_AT:
            folder = directory / f"step_{step}"
            folder.mkdir(exist_ok=True)
            (folder / "model.json").write_text("{}")
            (directory / "latest").symlink_to(folder.name)
        if step == VALIDATED_AT:
            print("Evaluating on 2560 samples", flush=True)
            if config["data"]["val_batch_size"] > FITS:
                print(
                    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 7 has a "
                    "total capacity of 79.11 GiB of which 1.02 GiB is free.",
                    file=sys.stderr,
                    flush=True,
                )
                raise SystemExit(1)
    print("[after training is done] datetime: 2026-01-02 03:04:05", flush=True)


main()
