"""A job that is started twice: `python restarted_job.py DIRECTORY`. Each start notes itself there.

The first trains until `crash` stands in the directory, prints what that file says, and ends with exit code 1.
The second prints one step and ends well.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

SECOND = 1000
"""The step that the second start prints."""


def main(directory: Path) -> int:
    _note(directory)
    if len((directory / "starts").read_text().splitlines()) > 1:
        _train(SECOND)
        return 0
    step = 0
    while not (directory / "crash").exists():
        step += 1
        _train(step)
        time.sleep(0.1)  # the pace of the job that is watched; no test waits here
    print((directory / "crash").read_text(), flush=True)
    return 1


def _train(step: int) -> None:
    fields = ("elapsed time per iteration (ms): 100.0", "lm loss: 2.000000E+00", "grad norm: 1.000")
    print(" | ".join((f" iteration {step:8d}/ {SECOND}", *fields)), flush=True)


def _note(directory: Path) -> None:
    parent = os.getppid()
    entrance = importlib.util.find_spec("midwatch.__main__")
    assert entrance is not None
    row = {
        "pid": os.getpid(),
        "parent": parent,
        "shim": Path(f"/proc/{parent}/cmdline").read_text().split("\0")[:-1],
        "entrance": str(Path(entrance.origin or "").resolve()),
        "job": os.environ["MIDWATCH_JOB"],
        "incarnation": os.environ["MIDWATCH_INCARNATION"],
        "variable": os.environ.get("NCCL_DEBUG", ""),
        "job_name": os.environ.get("SLURM_JOB_NAME", ""),
    }
    with (directory / "starts.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    with (directory / "starts").open("a") as file:
        file.write(f"{os.getpid()}\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
