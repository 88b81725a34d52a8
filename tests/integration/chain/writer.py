"""A job of several nodes for the tests: one log file a node, told by files in its directory what to do.

`hang`: lives on and prints nothing. `evaluate`: says that it evaluates, then nothing while the file is there.
`crash`: prints what the file says, a JSON list of [node, line], and ends with exit code 1. `finish`: ends
with exit code 0. Only the first start obeys, but every one finishes; each start notes itself in `starts`.
Only the first node prints progress.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def main(directory: Path, nodes: list[str]) -> None:
    with (directory / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    first = len((directory / "starts").read_text().splitlines()) == 1
    step, evaluating = 0, False
    while True:
        time.sleep(0.1)  # the pace of the job that is watched; no test waits here
        if (directory / "finish").exists():
            return
        if first and (directory / "hang").exists():
            continue
        if first and (directory / "crash").exists():
            for node, line in json.loads((directory / "crash").read_text()):
                _print(directory, node, line)
            raise SystemExit(1)
        if first and (directory / "evaluate").exists():
            if not evaluating:
                _print(directory, nodes[0], "Evaluating on 2560 samples")
            evaluating = True
            continue
        evaluating = False
        step += 1
        fields = (
            f" iteration {step:8d}/  100000",
            f"consumed samples: {step * 8:12d}",
            "elapsed time per iteration (ms): 100.0",
            "learning rate: 1.0E-04",
            "global batch size:     8",
            "lm loss: 2.000000E+00",
            "loss scale: 1.0",
            "grad norm: 1.000",
            "number of skipped iterations:   0",
            "number of nan iterations:   0 |",
        )
        _print(directory, nodes[0], " | ".join(fields))
        for node in nodes[1:]:
            _print(directory, node, f"node {node}: all is well in step {step}")


def _print(directory: Path, node: str, line: str) -> None:
    with (directory / f"{node}.log").open("a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
