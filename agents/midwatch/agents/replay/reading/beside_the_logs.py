"""What stands beside the logs in a job's folder, and is text as well: programs, settings, pages. Pure.

Such a file quotes errors that never happened. A tracker's own log tells of its uploads, and of no training.
"""

from __future__ import annotations

import re
from pathlib import PurePath

_KINDS = {
    "source code": "py pyi ipynb c cc cpp cu cuh h hpp ii ptx cmake go rs java kt scala jl lua proto js ts cs"
    " php pl rb sql sh bash zsh csh sbatch ps1 bat patch diff",
    "settings": "yaml yml toml ini cfg conf xml lock",
    "a page": "md rst html htm css tex bib",
}
_BY_ENDING = {f".{ending}": kind for kind, endings in _KINDS.items() for ending in endings.split()}
_OF_TOOLS = frozenset((".git", "__pycache__", "node_modules", "site-packages", ".ipynb_checkpoints"))
_TRACKER = re.compile(
    r"(?:^|/)wandb/(?:(?:offline-)?run-[^/]+/logs/|latest-run/logs/)?debug(?:-(?:internal|core|cli)[^/]*)?\.log$"
)
_RECORDS = re.compile(rb"\s*\{[^\n]*\}\s*\n\s*\{")
"""Two JSON objects, each in a line of its own: a log of records."""


def no_log(path: PurePath, head: bytes) -> str | None:
    """What a file of text in a job's folder is instead of a log; None if it may be one.

    `path` is relative to the folder, and `head` is the file's beginning. A file that a user names is read
    anyway.
    """
    if _OF_TOOLS.intersection(path.parts):
        return "a tool's own file"
    if _TRACKER.search(path.as_posix()):
        return "a tracker's own log"
    if path.suffix.lower() == ".json" and not _RECORDS.match(head):
        return "settings"
    return _BY_ENDING.get(path.suffix.lower())
