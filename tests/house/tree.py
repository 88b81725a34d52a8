"""The files that belong to the repository: what git tracks or would, else what lies in the tree."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = ("streams", "rules", "shippers", "agents")


def files_of_repository(root: Path = ROOT) -> list[Path]:
    """All files below `root` that git does not ignore, sorted.

    Outside a git checkout (an unpacked sdist) every file counts, except those under a hidden or cache
    folder at any depth.
    """
    if (names := _known_to_git(root)) is not None:
        return sorted(path for name in names if (path := root / name).is_file())
    everything = (path for path in root.rglob("*") if path.is_file())
    return sorted(path for path in everything if not _is_cache(path.relative_to(root)))


def _known_to_git(root: Path) -> list[str] | None:
    """What git tracks or would track; None without a git, or outside a checkout."""
    if shutil.which("git") is None:
        return None
    git = ["git", "-c", f"safe.directory={root}"]
    listing = subprocess.run(
        [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=False,
    )
    return None if listing.returncode else [name for name in listing.stdout.decode().split("\0") if name]


def _is_cache(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts[:-1])
