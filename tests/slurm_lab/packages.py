"""Gets Debian's packages onto a machine, or says in one sentence why they cannot be had here."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

CONTROLLER = {"slurmctld": "slurm-wlm", "munged": "munge"}
ACCOUNTING = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server"}
_EXTRA = {"slurmdbd": ("slurm-wlm-mysql-plugin",)}  # packages that bring no program of their own


def missing(programs: dict[str, str]) -> list[str]:
    """The packages whose program is not there."""
    names: list[str] = []
    for program, package in programs.items():
        if shutil.which(program, path=search_path()) is None:
            names += [package, *_EXTRA.get(program, ())]
    return names


def search_path() -> str:
    """PATH with the folders where Debian keeps its daemons."""
    return os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"


def obtain(programs: dict[str, str]) -> str:
    """As `install`; the daemons of a lab cluster run as root only."""
    if os.geteuid() != 0 and not missing(programs):
        return "the daemons of a lab cluster run as root"
    return install(programs)


def install(programs: dict[str, str]) -> str:
    """Installs what is missing; returns "" or the reason why the programs cannot be had."""
    packages = missing(programs)
    if not packages:
        return ""
    if os.geteuid() != 0:
        return f"only root may install {' '.join(packages)}"
    if shutil.which("apt-get") is None:
        return f"no apt-get here to install {' '.join(packages)}"
    with (Path(tempfile.gettempdir()) / "midwatch-apt.lock").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)  # tests run side by side, and apt waits for nobody's lists
        packages = missing(programs)
        if not packages:
            return ""
        return _apt("update") or _apt("install", "-y", "--no-install-recommends", *packages)


def _apt(*arguments: str) -> str:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    argv: Sequence[str] = ("apt-get", "-q", "-o", "DPkg::Lock::Timeout=120", *arguments)
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=600, check=False)
    last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
    return "" if done.returncode == 0 else f"apt-get {arguments[0]} failed: {last[0]}"
