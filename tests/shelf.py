"""A small batch system for tests: `shelf FOLDER list|boot|submit KEY -- ARGV|cancel ID`.

A job is a folder named by its key, which can be made only once; that is the fence against a second start.
Every submission stands in `submissions`, also one that was refused.
"""

from __future__ import annotations

import getpass
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path


def main(folder: Path, what: str, *words: str) -> int:
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    if what == "submit":
        return _submit(folder, words[0], words[2:])
    if what == "cancel":
        for job in (folder / "jobs").iterdir():
            if (job / "id").read_text() == words[0]:
                os.killpg(int((job / "pid").read_text()), signal.SIGTERM)
        print("[]")
    elif what == "boot":
        print(json.dumps([{"name": "first", "age": 3600.0}]))
    else:
        print(json.dumps(list(_rows(folder))))
    return 0


def _submit(folder: Path, key: str, argv: tuple[str, ...]) -> int:
    with (folder / "submissions").open("a") as file:
        file.write(f"{key}\n")
    job = folder / "jobs" / key
    try:
        job.mkdir()
    except FileExistsError:
        print("there is a job of that key", file=sys.stderr)
        return 1
    script = '"$@"; echo $? > "$0/code.draft"; mv "$0/code.draft" "$0/code"'
    with (job / "output").open("wb") as output:
        child = subprocess.Popen(
            ["sh", "-c", script, str(job), *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    (job / "pid").write_text(str(child.pid))
    (job / "id").write_text(str(time.time_ns()))
    return 0


def _rows(folder: Path) -> Iterator[dict[str, object]]:
    for job in sorted((folder / "jobs").iterdir()):
        if not (job / "id").exists():
            continue
        code = int((job / "code").read_text()) if (job / "code").exists() else None
        number = int((job / "id").read_text())
        yield {"id": number, "key": job.name, "user": getpass.getuser(), "code": code}


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), *sys.argv[2:]))
