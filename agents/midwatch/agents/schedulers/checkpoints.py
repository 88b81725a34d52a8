"""Finds the latest complete checkpoint of a directory, and says why it passed over newer ones.

Two layouts may lie side by side. One is `step_N/` with a pointer `latest`, a link or a file. DeepSpeed calls
its folders `global_stepN/`, and the Trainer of Hugging Face `checkpoint-N/`. The other layout is Megatron's
`iter_000000N/` with the pointer `latest_checkpointed_iteration.txt`. A trainer writes the pointer
last, so a checkpoint newer than the pointer is unfinished. The exception is a `step_N/` whose own manifest
proves it complete. Megatron loads only what its pointer names, so no manifest helps a newer `iter_` folder.
This module never loads or unpickles a checkpoint.
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
HASHED_BYTES = (
    64 * 1024 * 1024
)  # larger files are checked by size alone: reading terabytes proves little more

_STEP = re.compile(r"(?:step_|global_step|checkpoint-)(\d+)")
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
    """A newer folder that is no complete checkpoint, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """The checkpoints of a directory. `latest` is None where no checkpoint is complete."""

    latest: Checkpoint | None
    passed_over: tuple[PassedOver, ...] = ()


def discover(directory: Path) -> Discovery:
    """Looks at the folders of `directory`. A missing directory holds no checkpoint.

    Raises:
        OSError: the directory exists and cannot be read, which must not look like "no checkpoint".
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
    """The step in Megatron's pointer. `release`, or any other text that is no number, counts as none."""
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
    """Why a job must not resume from this folder; "" if it may."""
    if megatron and (pointer is None or step > pointer):
        return f"newer than the step in {TRACKER}" if pointer is not None else f"there is no {TRACKER}"
    if (folder / MANIFEST).exists():
        return _against_manifest(folder)
    if pointer is None:
        return f"nothing shows that it is complete: no {MANIFEST}, no `latest`"
    if step > pointer:
        return f"newer than `latest`, and no {MANIFEST} proves it complete"
    return _against_layout(folder)


def _against_manifest(folder: Path) -> str:
    """Why the folder differs from its manifest, which lists every file with its bytes and sha256; else ""."""
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
    """Why the files of a checkpoint without a manifest are incomplete; "" if they seem complete."""
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
