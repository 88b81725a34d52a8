"""A job that prints numbered lines into the file it is given until `FILE.stop` exists, then says how many."""

from __future__ import annotations

import sys
import time
from pathlib import Path

A_TIME = 100
REST = "elapsed time per iteration (ms): 1.0 | lm loss: 2.000000E+00"


def main(file: Path) -> None:
    stop, number = file.with_suffix(".stop"), 0
    with file.open("a") as out:
        while not stop.exists():
            for _ in range(A_TIME):
                number += 1
                out.write(f" iteration {number:8d}/ 9999999 | {REST} |\n")
            out.flush()
            time.sleep(0.1)  # the pace of the job that is watched; no test waits here
    file.with_suffix(".count").write_text(f"{number}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
