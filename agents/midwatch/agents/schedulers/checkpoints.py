"""Which checkpoint of a directory is the latest complete one, and why newer ones are not.

Two layouts, which may lie side by side: `step_N/` with a link (or a file) `latest` that names one, and
Megatron's `iter_000000N/` with `latest_checkpointed_iteration.txt`. In both the pointer is written last, so
what is newer than the pointer was not finished, unless its own manifest proves otherwise; Megatron alone is
held to its pointer, because it loads nothing else. Nothing is ever loaded or unpickled here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRACKER = "latest_checkpointed_iteration.txt"
MANIFEST = "manifest.json"
HASHED_BYTES = 64 * 1024 * 1024  # larger files are judged by their size: reading terabytes proves little more

_STEP = re.compile(r"step_(\d+)")
_ITERATION = re.compile(r"iter_(\d{7,})")
_WEIGHTS = frozenset({".pt", ".pth", ".bin", ".distcp", ".safetensors", ".ckpt"})


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint. `written_at`: seconds since 1970, by the file system's clock."""

    step: int
    path: Path
    written_at: float


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A newer one that was not chosen, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """`latest` is None where a start from there would begin at step 1."""

    latest: Checkpoint | None
    passed_over: tuple[PassedOver, ...] = ()


def discover(directory: Path) -> Discovery:
    """Looks at the folders of `directory`; a missing directory holds no checkpoint.

    Raises:
        OSError: the directory is there and cannot be read (which must not look like "no checkpoint").
    """
    try:
        folders = [entry for entry in directory.iterdir() if entry.is_dir() and not entry.is_symlink()]
    except FileNotFoundError:
        return Discovery(None)
    passed: list[PassedOver] = []
    candidates = [*_numbered(folders, _STEP), *_numbered(folders, _ITERATION)]
    tracker, link = _tracker(directory), _latest(directory)
    for step, folder in sorted(candidates, key=lambda found: found[0], reverse=True):
        megatron = folder.name.startswith("iter_")
        pointer = tracker if megatron else (link if link is not None else tracker)
        objection = _objection(folder, step, pointer, megatron)
        if not objection:
            return Discovery(Checkpoint(step, folder, folder.stat().st_mtime), tuple(passed))
        passed.append(PassedOver(folder, objection))
    return Discovery(None, tuple(passed))


def _numbered(folders: list[Path], form: re.Pattern[str]) -> Iterator[tuple[int, Path]]:
    for folder in folders:
        if match := form.fullmatch(folder.name):
            yield int(match[1]), folder


def _tracker(directory: Path) -> int | None:
    """Megatron's word; `release` and anything else that is no number count as none."""
    try:
        text = (directory / TRACKER).read_text(errors="replace").strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None


def _latest(directory: Path) -> int | None:
    """The step that `latest` names, as a link or (as DeepSpeed has it) as a file's content."""
    pointer = directory / "latest"
    try:
        if pointer.is_symlink():
            name = pointer.readlink().name
        elif pointer.is_file():
            name = Path(pointer.read_text(errors="replace").strip()).name
        else:
            return None
    except FileNotFoundError:
        return None
    match = _STEP.fullmatch(name)
    return int(match[1]) if match else None


def _objection(folder: Path, step: int, pointer: int | None, megatron: bool) -> str:
    """Why this folder is not to be resumed from; "" if it is."""
    if megatron and (pointer is None or step > pointer):
        return f"newer than {TRACKER} says" if pointer is not None else f"there is no {TRACKER}"
    if (folder / MANIFEST).exists():
        return _against_manifest(folder)
    if pointer is None:
        return f"nothing says that it is complete: no {MANIFEST}, no `latest`"
    if step > pointer:
        return f"newer than `latest`, and no {MANIFEST} proves it complete"
    return _against_layout(folder)


def _against_manifest(folder: Path) -> str:
    """The manifest lists every file with its bytes and sha256."""
    try:
        entries: list[dict[str, Any]] = json.loads((folder / MANIFEST).read_bytes())["shards"]
        listed = [
            (str(entry["file"]), int(entry["bytes"]), str(entry.get("sha256", ""))) for entry in entries
        ]
    except (ValueError, KeyError, TypeError):
        return f"its {MANIFEST} cannot be read"
    if not listed:
        return f"its {MANIFEST} lists nothing"
    for name, size, digest in listed:
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        found = path.stat().st_size
        if found != size:
            return f"{name} has {found} of {size} bytes"
        if digest and size <= HASHED_BYTES and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            return f"{name} is not what was written: its sha256 differs"
    return ""


def _against_layout(folder: Path) -> str:
    """What can be said of a checkpoint that does not describe itself."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    if not files:
        return "it is empty"
    for path in files:
        if path.suffix in _WEIGHTS and path.stat().st_size == 0:
            return f"{path.relative_to(folder)} is empty"
    if any(path.suffix == ".distcp" for path in files):
        for name in (".metadata", "metadata.json"):
            if not (folder / name).is_file() or (folder / name).stat().st_size == 0:
                return f"a distributed checkpoint without {name}"
    for rank in folder.glob("mp_rank_*"):
        if not any(path.suffix in _WEIGHTS for path in rank.rglob("*")):
            return f"{rank.name} holds no weights"
    return ""
