"""The files that belong to the repository: what git tracks or would, else what lies in the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = ("streams", "rules", "shippers", "agents")


def files_of_repository(root: Path = ROOT) -> list[Path]:
    """All files below `root` that git does not ignore, sorted.

    Outside a git checkout (an unpacked sdist) every file counts, except those under a hidden or cache
    folder at any depth.
    """
    git = ["git", "-c", f"safe.directory={root}"]
    listing = subprocess.run(
        [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0:
        names = listing.stdout.decode().split("\0")
        return sorted(path for name in names if name and (path := root / name).is_file())
    everything = (path for path in root.rglob("*") if path.is_file())
    return sorted(path for path in everything if not _is_cache(path.relative_to(root)))


def _is_cache(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts[:-1])
