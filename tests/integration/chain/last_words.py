"""A job that takes its shipper with it: `python last_words.py`. A traceback is the last thing that it prints.

It trains until `now` stands beside it, kills the shipper that its shim started, and dies of an exception
within 100 ms. With `all` there it kills its shim as well, so that nobody is left who could start another.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


def main(directory: Path) -> None:
    (directory / "starts").open("a").write(f"{os.getpid()}\n")
    step = 0
    while not (directory / "now").exists():
        step += 1
        fields = (
            f" iteration {step:8d}/  100000",
            "elapsed time per iteration (ms): 100.0",
            "lm loss: 2.000000E+00",
            "grad norm: 1.000",
            "number of nan iterations:   0 |",
        )
        print(" | ".join(fields), flush=True)
        time.sleep(0.1)  # the pace of the job that is watched
    shim = os.getppid()
    children = Path(f"/proc/{shim}/task/{shim}/children").read_text().split()
    victims = [int(pid) for pid in children if int(pid) != os.getpid()]
    victims += [shim] if (directory / "all").exists() else []
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    (directory / "killed").write_text(" ".join(map(str, victims)))
    raise ValueError(f"the head dimension 129 of start {os.getpid()} does not divide the hidden size 4096")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
