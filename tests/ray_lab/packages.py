"""Ray in an environment of its own, made once from the hashed lock, or one sentence why it cannot be had."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from house.tree import ROOT

LOCK = ROOT / "requirements" / "ray.lock"
FOLDER = Path(os.environ.get("MIDWATCH_RAY_VENV") or ROOT / ".ray-venv")
_MADE = ".made-from.lock"
_LIMIT_S = 540


def obtain() -> str:
    """Makes the environment if it is not there; returns "" or the reason why it cannot be had.

    Its folder keeps a copy of the lock, so a changed lock makes it anew.
    """
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with FOLDER.with_name(FOLDER.name + ".lock").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)  # tests run side by side
        made = FOLDER / _MADE
        if made.exists() and made.read_bytes() == LOCK.read_bytes():
            return ""
        python = str(FOLDER / "bin" / "python")
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes")
        problem = _run(sys.executable, "-m", "venv", "--clear", str(FOLDER)) or _run(*pip, "-r", str(LOCK))
        if not problem:
            made.write_bytes(LOCK.read_bytes())
        return problem


def _run(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{' '.join(argv[:4])}: {error}"
    last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
    return "" if done.returncode == 0 else f"{' '.join(argv[:4])} failed: {last[0]}"
