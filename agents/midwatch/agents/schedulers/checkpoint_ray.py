"""The checkpoints that Ray Train keeps below its storage path, and what proves that all ranks saved theirs.

Ray copies the files of each rank into one folder, and only then does the rank report it.

- Ray Train V2 names the folder `checkpoint_DATE`. Once every rank has reported, the controller writes
  `checkpoint_manager_snapshot.json` beside it, which names all complete checkpoints in their order. From this
  file Ray itself goes on.
- Ray Train V1 names the folder `checkpoint_00000N`, within the folder of a trial. The driver notes each
  checkpoint in `result.json` once every rank has reported. That file may reach the storage minutes later. A
  rank can be ahead of another by one checkpoint, never by two, so folder N+2 proves folder N.

The step is a metric of the report, or stands in `.metadata.json`, which `Checkpoint.set_metadata` writes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from midwatch.agents.schedulers.checkpoint_names import Unit, folder_name
from midwatch.agents.schedulers.checkpoint_store import Place, is_below

MARKER = ".validate_storage_marker"
"""The file that Ray writes into the folder of each run at its start. Trials of V1 lie below that folder."""
SNAPSHOT = "checkpoint_manager_snapshot.json"
RESULTS = "result.json"
METADATA = ".metadata.json"

_DATED = re.compile(r"checkpoint_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(?:\.\d+)?")
_NUMBERED = re.compile(r"checkpoint_(?P<number>\d{6,})")
_STEPS = ("step", "global_step", "iteration")
_EPOCHS = ("epoch",)
_AHEAD = 2


@dataclass(frozen=True, slots=True)
class RaySave:
    """One checkpoint of a run. `number`: None if unknown. `objection`: "" if all ranks have reported it."""

    path: Place
    number: int | None = None
    unit: Unit = "step"
    objection: str = ""


def ray_runs(directory: Place, entries: Sequence[Place]) -> Iterator[tuple[RaySave, ...]]:
    """The checkpoints of each run in the directory or one folder below it, those of a run newest first.

    It lists only folders that Ray has marked, for another one may hold a million files.
    """
    yield from _run(directory, entries)
    marked = any(entry.name == MARKER for entry in entries)
    for entry in entries:
        if _is_checkpoint(entry.name) or not entry.is_dir():
            continue
        inside: tuple[Place, ...] = ()
        with suppress(PermissionError, FileNotFoundError):  # such as lost+found
            if marked or (entry / MARKER).exists():
                inside = tuple(entry.iterdir())
        yield from _run(entry, inside)


def _is_checkpoint(name: str) -> bool:
    return bool(_DATED.fullmatch(name) or _NUMBERED.fullmatch(name) or folder_name(name))


def _run(folder: Place, entries: Sequence[Place]) -> Iterator[tuple[RaySave, ...]]:
    dated = [each for each in entries if _DATED.fullmatch(each.name)]
    numbered = [each for each in entries if _NUMBERED.fullmatch(each.name)]
    if dated or any(each.name == SNAPSHOT for each in entries):
        yield _by_snapshot(folder, dated)
    if numbered:
        yield _by_results(folder, numbered)


def _by_snapshot(run: Place, dated: Sequence[Place]) -> tuple[RaySave, ...]:
    """Of Ray Train V2."""
    try:
        listed = _listed(json.loads((run / SNAPSHOT).read_bytes()))
        doubt = "" if listed else f"{SNAPSHOT} names no checkpoint: not all ranks have reported it"
    except FileNotFoundError:
        listed, doubt = {}, f"there is no {SNAPSHOT}: not all ranks have reported it"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        listed, doubt = {}, f"{SNAPSHOT} cannot be read"
    reported = max((name for name in listed if _DATED.fullmatch(name)), default="")
    # Older ones that the snapshot does not name are those that Ray deletes.
    others = sorted((each for each in dated if each.name > reported), key=lambda each: each.name)
    why = doubt or f"{SNAPSHOT} does not name it: not all ranks have reported it"
    torn = tuple(RaySave(each, objection=why) for each in reversed(others))
    return torn + tuple(_save(run, run / name, metrics) for name, metrics in reversed(listed.items()))


def _listed(state: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The metrics of each checkpoint that a snapshot names, in the order of their reports."""
    results = list(state["checkpoint_results"])
    order = state.get("checkpoint_report_indices") or ()
    if len(order) == len(results):  # else by their order in the list: they may be sorted by a score
        results = [each for _, each in sorted(zip(order, results, strict=True), key=lambda pair: pair[0])]
    latest = state.get("latest_checkpoint_result")
    found = {str(each["checkpoint_dir_name"]): dict(each["metrics"]) for each in results}
    if latest:
        name = str(latest["checkpoint_dir_name"])
        found.pop(name, None)
        found[name] = dict(latest["metrics"])
    return {name: metrics for name, metrics in found.items() if _is_within(name)}


def _is_within(name: str) -> bool:
    return not {"", ".", ".."}.intersection(name.split("/"))


def _by_results(trial: Place, numbered: Sequence[Place]) -> tuple[RaySave, ...]:
    """Of Ray Train V1."""
    reports = _reports(trial / RESULTS)
    by_number = {int(each.name.rpartition("_")[2]): each for each in numbered}
    noted = max((number for number, each in by_number.items() if each.name in reports), default=-1)
    begun = max(by_number)
    found = list[RaySave]()
    for number, each in sorted(by_number.items(), key=lambda pair: pair[0], reverse=True):
        proven = each.name in reports or noted < number <= begun - _AHEAD
        why = f"{RESULTS} does not name it, and no later folder proves it: a rank may lack its part"
        found.append(
            _save(trial, each, reports.get(each.name, {})) if proven else RaySave(each, objection=why)
        )
    return tuple(found)


def _reports(file: Place) -> dict[str, Mapping[str, Any]]:
    """The metrics of each checkpoint that the driver has noted, without a line that was cut short."""
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    found: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        try:
            metrics = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(metrics, dict) and isinstance(name := metrics.get("checkpoint_dir_name"), str):
            found[name] = metrics
    return found


def _save(run: Place, path: Place, metrics: Mapping[str, Any]) -> RaySave:
    """A checkpoint that all ranks reported, with its step or its epoch."""
    if path.is_symlink() or not is_below(path, run):
        return RaySave(path, objection="it is a link or lies behind one, and Ray makes none")
    if not path.is_dir():
        return RaySave(path, objection="the folder is missing, though it was reported")
    number, unit = _number(metrics)
    if number is None:
        number, unit = _number(_metadata(path / METADATA))
    if number is None and (named := folder_name(path.name)):
        number, unit = named.number, named.unit
    return RaySave(path, number, unit)


def _number(known: Mapping[str, Any]) -> tuple[int | None, Unit]:
    """The step, else the epoch, among these metrics; None if they hold neither."""
    steps: Iterator[int | None] = (_count(known.get(name)) for name in _STEPS)
    epochs: Iterator[int | None] = (_count(known.get(name)) for name in _EPOCHS)
    if (step := next((each for each in steps if each is not None), None)) is not None:
        return step, "step"
    return next((each for each in epochs if each is not None), None), "epoch"


def _count(value: object) -> int | None:
    """A count that a metric holds; frameworks report some as floating-point numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and value >= 0 and value == int(value) else None


def _metadata(file: Place) -> Mapping[str, Any]:
    try:
        known = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}
