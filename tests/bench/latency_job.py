"""The jobs that the latency bench watches: `python latency_job.py KIND LEDGER`. Each keeps a ledger.

`steady` trains for ever, ten steps a second, and after every sixth prints a cause line that the next steps
prove harmless. `mortal` trains for half a second, prints a cause line and dies of it. The ledger's times are
taken before the line is written, one JSON object a line.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

STEP_S = 0.1
STEPS_BETWEEN = 6
CAUSE = (
    "node-7:4711:4833 [0] transport/net_ib.cc:1412 NCCL WARN NET/IB : Got completion from peer "
    "10.0.3.17<{number}> with status=12 opcode=0 len=0 vendor err 129 (Send) "
)


def progress(step: int) -> str:
    fields = (
        f" iteration {step:8d}/ 1000000",
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
    return " | ".join(fields)


class Job:
    """One start; what it writes goes to the ledger first."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def note(self, what: str, number: int) -> None:
        row = {"t": time.time(), "what": what, "number": number, "pid": os.getpid()}
        os.write(self._ledger, (json.dumps(row) + "\n").encode())

    def write(self, what: str, number: int, line: str) -> None:
        self.note(what, number)
        os.write(1, f"{line}\n".encode())


def steady(job: Job) -> None:
    job.note("shim", os.getppid())
    step = 0
    while True:
        step += 1
        job.write("step", step, progress(step))
        if step % STEPS_BETWEEN == 0:
            number = step // STEPS_BETWEEN
            job.write("cause", number, CAUSE.format(number=number))
        time.sleep(STEP_S)  # the pace of the job that is watched


def mortal(job: Job) -> None:
    number = os.getpid()  # other than in every earlier start
    job.note("start", number)
    for step in range(1, 6):
        job.write("step", step, progress(step))
        time.sleep(STEP_S)  # the pace of the job that is killed
    job.write("cause", number, CAUSE.format(number=number))
    job.note("exit", number)
    sys.exit(1)


KINDS: dict[str, Callable[[Job], None]] = {"steady": steady, "mortal": mortal}

if __name__ == "__main__":
    KINDS[sys.argv[1]](Job(Path(sys.argv[2])))
