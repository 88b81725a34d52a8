"""A trainer that saves every tenth step and dies of a transient failure at step 45, under a whole midwatch.

`resuming_trainer.py CHECKPOINTS HABIT`. The habit says what a later start does: `resumes` where it is told
to, `ignores` it and dies again, or `from_zero` resumes where the counter starts at 0. `meets_late` is the one
that resumes too, but its second start does not get its ranks together.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

FAILURE = (
    "[rank1]:[E1120 03:04:05.678901 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=414, OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=9000) ran for 9003 "
    "milliseconds before timing out."
)
NOT_MET = (
    "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 1/2 clients joined."
)
DIES_AT, TORN, LAST = 45, 50, 60


def save(checkpoints: Path, step: int, *, content: bytes = b"weights") -> None:
    folder = checkpoints / f"step_{step}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights.pt").write_bytes(content)
    (folder / "manifest.json").write_text(json.dumps({"shards": [{"file": "weights.pt", "bytes": 7}]}))


def meets(checkpoints: Path) -> bool:
    """Whether the ranks meet. They do in each start that asks, but for the first one."""
    late = checkpoints / "met_late"
    late.parent.mkdir(parents=True, exist_ok=True)
    try:
        late.touch(exist_ok=False)
    except FileExistsError:
        return True
    return False


def main(checkpoints: Path, habit: str) -> int:
    lowest = 0 if habit == "from_zero" else 1
    told = os.environ.get("MIDWATCH_RESUME_STEP")
    first = int(told) + lowest if told is not None and habit != "ignores" else lowest
    dies = told is None or habit == "ignores"
    if habit == "meets_late" and not dies and not meets(checkpoints):
        print(NOT_MET, flush=True)
        return 1
    for step in range(first, DIES_AT + 1 if dies else LAST + 1):
        print(f"step {step}/{LAST} loss 2.0", flush=True)
        if step and step % 10 == 0:
            save(checkpoints, step)
        time.sleep(0.02)  # a step's work
    if dies:
        save(checkpoints, TORN, content=b"wei")
        print(FAILURE, flush=True)
    return 1 if dies else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
