"""A training of a few steps, as a user of the training monitor might have it: standard library, one process.

It prints its steps, saves `step_N` with a link `latest`, resumes where it is told, and notes each start. The
word after the directory says what happens at step 6 of the first start: `fail`, `hang` or `go`.
"""

import os
import sys
import time
from pathlib import Path

STEPS, SAVE_EVERY, FAULT_AT = 10, 2, 6


def save(directory: Path, step: int) -> None:
    folder = directory / f"step_{step}"
    folder.mkdir(exist_ok=True)
    (folder / "state.json").write_text(str(step))
    link = directory / "latest.new"
    link.symlink_to(folder.name)
    link.rename(directory / "latest")


def main() -> None:
    directory, fault = Path(sys.argv[1]), sys.argv[2]
    directory.mkdir(parents=True, exist_ok=True)
    first = int(os.environ.get("MIDWATCH_RESUME_STEP", "0")) + 1
    with (directory / "starts").open("a") as notes:
        notes.write(f"{first}\n")
    is_first = (directory / "starts").read_text().count("\n") == 1
    for step in range(first, STEPS + 1):
        if is_first and step == FAULT_AT and fault == "fail":
            raise SystemExit("CUDA out of memory")
        while is_first and step == FAULT_AT and fault == "hang":
            time.sleep(1)  # it hangs for ever
        print(f"step {step}/{STEPS} | loss 1.5 | 1,200 tokens/s", flush=True)
        if step % SAVE_EVERY == 0:
            save(directory, step)


main()
