"""Finds the latest complete checkpoint of a directory, and says why it passed over newer ones.

A checkpoint is complete where something shows it, and what shows it differs by trainer:

- A manifest in the folder lists its files, and they fit.
- A pointer that the trainer writes last names this or a later step: `latest`, as a link or a file, or
  Megatron's `latest_checkpointed_iteration.txt`. Megatron loads only what its pointer names.
- The checkpoint ends with a part that its trainer writes last. For a `.ckpt` file that is the directory of
  its archive, for distributed weights `.metadata`. For torchtune it is `recipe_state.pt`, for Hugging Face
  `trainer_state.json`.

With model parallelism NeMo saves a file of each rank, each in its rank's folder. They are one checkpoint.
Ray Train keeps its own record of what is complete, see `checkpoint_ray`.

NeMo sets a marker `NAME-unfinished` beside a checkpoint while it writes or deletes it.
This module never loads or unpickles a checkpoint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from midwatch.agents.schedulers.checkpoint_files import WEIGHTS, is_whole_zip, not_saved, step_inside, torn
from midwatch.agents.schedulers.checkpoint_names import Named, Unit, file_name, folder_name
from midwatch.agents.schedulers.checkpoint_ranks import ranked
from midwatch.agents.schedulers.checkpoint_ray import RaySave, ray_runs
from midwatch.agents.schedulers.checkpoint_store import Place

TRACKER = "latest_checkpointed_iteration.txt"
MANIFEST = "manifest.json"
RECIPE_STATE = "recipe_state.pt"
TRAINER_STATE = "trainer_state.json"
NEMO_TRAINER = "trainer.pt"
UNFINISHED = "-unfinished"
HASHED_BYTES = (
    64 * 1024 * 1024
)  # larger files are checked by size alone: reading terabytes proves little more


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint, a folder or a file. `step` counts in `unit`: it may know only its epoch.

    `path`: what its trainer is told to load. NeMo puts the folder of each rank before the name, so a
    checkpoint of several ranks has no file of that path.
    `written_at`: seconds since 1970, by the file system's clock.
    """

    step: int
    path: Place
    written_at: float
    unit: Unit = "step"


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A newer folder or file that is no complete checkpoint, and why."""

    path: Place
    reason: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """The checkpoints of a directory. `latest` is None where no checkpoint is complete."""

    latest: Checkpoint | None
    passed_over: tuple[PassedOver, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    number: int
    unit: Unit
    path: Place
    named: Named
    objection: str = ""  # known before any look at pointers
    files: tuple[Place, ...] = ()  # of the ranks, where `path` itself does not exist

    @property
    def written_at(self) -> float:
        return max(file.stat().st_mtime for file in self.files or (self.path,))


def discover(directory: Place) -> Discovery:
    """Looks at the folders and files of `directory`, and at runs of Ray Train one folder below.

    A missing directory holds no checkpoint.
    Numbers of steps and of epochs cannot be compared. Of the two newest complete ones, the one counts that
    was written later.

    Raises:
        OSError: the directory exists and cannot be read, which must not look like "no checkpoint".
    """
    try:
        entries = [entry for entry in directory.iterdir() if not entry.is_symlink()]
        entries.sort(key=lambda entry: entry.name)
    except FileNotFoundError:
        return Discovery(None)
    candidates, passed, newest = [], list[PassedOver](), list[Checkpoint]()
    ray_saves = set[Place]()
    for saves in ray_runs(directory, entries):
        ray_saves |= {save.path for save in saves}
        newest += _newest_of_run(saves, passed)
    entries = [entry for entry in entries if entry not in ray_saves]
    for found in (*_candidates(entries), *_candidates_of_ranks(directory, entries)):
        if isinstance(found, PassedOver):
            passed.append(found)
        else:
            candidates.append(found)
    tracker, link = _tracker(directory), _latest(directory)
    for unit in ("step", "epoch"):
        ranked = sorted((c for c in candidates if c.unit == unit), key=lambda c: c.number, reverse=True)
        for each, before in zip_longest(ranked, ranked[1:]):
            doubt = _lacks_manifest(each, before) if each is ranked[0] else ""
            if reason := each.objection or _objection(each, tracker, link) or doubt:
                passed.append(PassedOver(each.path, reason))
                continue
            newest.append(Checkpoint(each.number, each.path, each.written_at, each.unit))
            break
    latest = max(newest, key=lambda checkpoint: checkpoint.written_at, default=None)
    return Discovery(latest, tuple(passed))


def _newest_of_run(saves: Sequence[RaySave], passed: list[PassedOver]) -> Iterator[Checkpoint]:
    """The newest complete checkpoint of a run of Ray Train; adds to `passed` the newer ones."""
    for save in saves:
        if reason := save.objection or _against_layout(save.path):
            passed.append(PassedOver(save.path, reason))
        elif save.number is None:
            reason = "nothing tells its step: report `step` or `epoch` as a metric beside the checkpoint"
            passed.append(PassedOver(save.path, reason))
        else:
            yield Checkpoint(save.number, save.path, save.path.stat().st_mtime, save.unit)
            return


def _candidates(entries: list[Place]) -> Iterator[_Candidate | PassedOver]:
    names = {entry.name for entry in entries}
    for entry in entries:
        folder = entry.is_dir()
        named = folder_name(entry.name) if folder else file_name(entry.name)
        if named is None:
            continue
        objection = _unfinished(entry.name, names)
        if not objection and not folder and (why := not_saved(entry)):
            objection = f"it {why}"
        yield _candidate(entry, named, objection, () if folder else (entry,))


def _candidates_of_ranks(directory: Place, entries: list[Place]) -> Iterator[_Candidate | PassedOver]:
    """The checkpoints of which each rank has a file in a folder of its own."""
    names = {entry.name for entry in entries}
    for name, files, objection in ranked(entries):
        if (named := file_name(name)) is not None:
            yield _candidate(directory / name, named, _unfinished(name, names) or objection, files)


def _candidate(
    path: Place, named: Named, objection: str, files: tuple[Place, ...]
) -> _Candidate | PassedOver:
    """The candidate of a name. Its `files` may know the step where the name tells an epoch."""
    number, unit = named.number, named.unit
    if not objection and files and unit == "epoch" and (step := step_inside(files[0])) is not None:
        number, unit = step, "step"
    if number is None:
        return PassedOver(path, objection or "nothing tells its step")
    return _Candidate(number, unit, path, named, objection, files)


def _unfinished(name: str, names: Set[str]) -> str:
    """Why NeMo's own marker says that the checkpoint is not whole; "" if there is none."""
    marker = f"{name.removesuffix('.ckpt')}{UNFINISHED}"
    return f"{marker} lies beside it" if marker in names else ""


def _objection(candidate: _Candidate, tracker: int | None, link: int | None) -> str:
    """Why a job must not resume from this checkpoint; "" if it may."""
    path, form = candidate.path, candidate.named.form
    if form == "lightning":
        return "" if candidate.files else _against_sharded(path)
    if form == "megatron" and (tracker is None or candidate.number > tracker):
        return f"newer than the step in {TRACKER}" if tracker is not None else f"there is no {TRACKER}"
    if (path / MANIFEST).exists():
        return _against_manifest(path)
    pointer = None if form == "torchtune" else tracker if form == "megatron" or link is None else link
    if pointer is None:
        return _against_last_part(path, candidate.number)
    newer = candidate.number > pointer
    return f"newer than `latest`, and no {MANIFEST} proves it complete" if newer else _against_layout(path)


def _lacks_manifest(newest: _Candidate, before: _Candidate | None) -> str:
    """Why the newest one is doubted though a pointer names it: its trainer gave the one before a manifest.

    A trainer that gives no manifest any more loses one checkpoint by this, and no second one.
    """
    if before is None or (newest.path / MANIFEST).exists() or not (before.path / MANIFEST).exists():
        return ""
    return f"it has no {MANIFEST}, and {before.path.name} before it has one"


def _against_last_part(folder: Place, step: int) -> str:
    """Why nothing in a folder shows that it is complete; "" if the part does that its trainer writes last.

    Hugging Face writes its own state after model and optimizer. Some versions write random states later,
    and a start does without those.
    """
    recipe, trainer = folder / RECIPE_STATE, folder / TRAINER_STATE
    if _is_filled(folder / ".metadata"):  # torchtune's asynchronous form
        return _against_layout(folder)
    if trainer.is_file():
        return _against_layout(folder) if _step_of_state(trainer) == step else f"{TRAINER_STATE} is not whole"
    if not recipe.is_file():
        return f"nothing shows that it is complete: no {MANIFEST}, no `latest`, no state of the trainer"
    return _against_layout(folder) if is_whole_zip(recipe) else f"{RECIPE_STATE} was cut short"


def _step_of_state(file: Place) -> object:
    """The step in the state of Hugging Face's Trainer; None if the file cannot be read."""
    try:
        return json.loads(file.read_bytes())["global_step"]
    except (ValueError, KeyError, TypeError):
        return None


def _against_sharded(folder: Place) -> str:
    """Why a folder of Lightning or NeMo is incomplete; "" if its last part is there.

    Megatron's distributed weights end with `metadata.json`, those of Lightning's FSDP with `meta.pt`. NeMo 2
    keeps them in `weights/`. DeepSpeed ends with the file `latest`, which names a folder beside it. If NeMo
    trains a model of Hugging Face, its own state `trainer.pt` comes last.
    """
    if any((folder / name).is_dir() for name in ("hf_weights", "hf_adapter")):
        whole = (folder / NEMO_TRAINER).is_file() and is_whole_zip(folder / NEMO_TRAINER)
        return _against_layout(folder) if whole else f"{NEMO_TRAINER} is missing or was cut short"
    weights = folder / "weights" if (folder / "weights").is_dir() else folder
    pointer = weights / "latest"
    if pointer.is_file() and (weights / pointer.read_text(errors="replace").strip()).is_dir():
        return _against_layout(folder)
    if not _is_filled(weights / ".metadata") and not _is_zarr(weights / "metadata.json"):
        return "a distributed checkpoint without .metadata"
    if not any(_is_filled(weights / name) for name in ("metadata.json", "meta.pt")):
        return "a distributed checkpoint without metadata.json or meta.pt"
    return _against_layout(folder)


def _is_zarr(metadata: Place) -> bool:
    """Whether Megatron's own metadata says that the tensors are stored in zarr, which has no `.metadata`."""
    try:
        return bool(json.loads(metadata.read_bytes())["sharded_backend"] == "zarr")
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False


def _latest(directory: Place) -> int | None:
    """The step that `latest` names, as a link or (as DeepSpeed has it) as a file's content."""
    pointer = directory / "latest"
    try:
        if isinstance(pointer, Path) and pointer.is_symlink():
            name = pointer.readlink().name
        elif pointer.is_file():
            name = Path(pointer.read_text(errors="replace").strip()).name
        else:
            return None
    except FileNotFoundError:
        return None
    named = folder_name(name)
    return named.number if named is not None and named.form == "step" else None


def _tracker(directory: Place) -> int | None:
    """The step in Megatron's pointer. `release`, or any other text that is no number, counts as none."""
    try:
        text = (directory / TRACKER).read_text(errors="replace").strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None


def _against_manifest(folder: Place) -> str:
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
        hashed = digest and size <= HASHED_BYTES and isinstance(path, Path)  # a store keeps its own checksums
        if hashed and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            return f"{name} is not what was written: its sha256 differs"
    return ""


def _against_layout(folder: Place) -> str:
    """Why the files of a checkpoint without a manifest are incomplete; "" if they seem complete."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    if not files:
        return "it is empty"
    for path in files:
        if path.suffix in WEIGHTS and (why := torn(path)):
            return f"{str(path).removeprefix(f'{folder}/')} {why}"
    for part in {path.parent for path in files if path.suffix == ".distcp"}:
        megatron = (part / "common.pt").is_file()
        for name in (".metadata", "metadata.json") if megatron else (".metadata",):
            if not _is_filled(part / name):
                return f"a distributed checkpoint without {name}"
    for rank in folder.glob("mp_rank_*"):
        if rank.is_dir() and not any(path.suffix in WEIGHTS for path in rank.rglob("*")):
            return f"{rank.name} holds no weights"
    return ""


def _is_filled(path: Place) -> bool:
    return path.is_file() and path.stat().st_size > 0
