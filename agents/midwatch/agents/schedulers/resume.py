"""Variables and arguments that tell a new start which checkpoint to load. It reads the checkpoint directory.

The choice is made when the start begins. On `local` the executor makes it, because the start begins at once.
A start that waits in a queue makes it itself: the executor hands it the directory and the template, and its
shim looks.

The arguments come from a template of words in the signed spec. A placeholder fills a place within one word,
and no shell reads the result. A path that lies outside the checkpoint directory is never handed on.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from midwatch.agents.schedulers.checkpoint_store import is_below, place
from midwatch.agents.schedulers.checkpoints import discover
from midwatch.shippers.identity import RESUME_FROM, RESUME_STEP, RESUME_UNIT, RESUME_WRITTEN
from midwatch.streams.errors import MidwatchError, UsageError
from midwatch.streams.records.words import Unit

ATTEMPT = "MIDWATCH_ATTEMPT"
DIRECTORY, TEMPLATE = "MIDWATCH_RESUME_DIRECTORY", "MIDWATCH_RESUME_TEMPLATE"
"""What a start that chooses for itself gets: the checkpoint directory, and the template's words as JSON."""
ADDED = "MIDWATCH_RESUME_ARGUMENTS"
"""How many words at the end of the command line the template gave. The shim drops them at a requeue."""
TRACE = "TRACEPARENT"
"""The span under which a trainer's own spans hang, in the form of W3C Trace Context."""
SHOWN = (RESUME_FROM, RESUME_STEP, ATTEMPT)
"""What the training reads, also where `srun` hands on variables by name."""
VARIABLES = (
    RESUME_FROM,
    RESUME_STEP,
    RESUME_UNIT,
    RESUME_WRITTEN,
    ATTEMPT,
    DIRECTORY,
    TEMPLATE,
    ADDED,
    TRACE,
)

_PLACEHOLDERS = ("checkpoint", "step", "directory")
_PLACEHOLDER = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A complete checkpoint that a start is told to load. `written_ms`: by the file system's clock."""

    step: int  # in `unit`
    path: str
    directory: str
    written_ms: int
    unit: Unit = "step"


@dataclass(frozen=True, slots=True)
class ToldStart:
    """The script's argv and variables at a start, and what the start's shipper needs beside them.

    `notes`: the checkpoints that were passed over, and why.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    for_shipper: Mapping[str, str]
    notes: tuple[str, ...] = ()


def template(texts: Sequence[str]) -> tuple[str, ...]:
    """The words of the template, split as a shell splits them, but with nothing expanded.

    Raises:
        UsageError: an open quotation mark, or a placeholder that is not known.
    """
    words: list[str] = []
    for text in texts:
        try:
            words += shlex.split(text)
        except ValueError as error:
            raise UsageError(
                f"it cannot be split into words: {str(error).lower()}",
                where=f"--resume-arg {text}",
                remedy="close the quotation mark",
            ) from error
    for word in words:
        unknown = [name for name in _PLACEHOLDER.findall(word) if name not in _PLACEHOLDERS]
        if unknown:
            raise UsageError(
                f"{{{unknown[0]}}} is no placeholder",
                where=f"--resume-arg {word}",
                remedy=f"use {', '.join(f'{{{name}}}' for name in _PLACEHOLDERS)}",
            )
    return tuple(words)


def filled(words: Sequence[str], point: ResumePoint) -> tuple[str, ...]:
    """The arguments for this checkpoint: as many words as the template has."""
    values = {"checkpoint": point.path, "step": str(point.step), "directory": point.directory}
    return tuple(_PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word) for word in words)


def newest(directory: str | Path) -> tuple[ResumePoint | None, tuple[str, ...]]:
    """The newest complete checkpoint of the directory, and why newer ones were passed over."""
    try:
        where = place(directory)
        found = discover(where)
    except MidwatchError as error:
        return None, (f"cannot read the checkpoints: {error.in_one_line}",)
    except OSError as error:
        return None, (f"cannot read the checkpoints: {error}",)
    notes = [f"skips the checkpoint {passed.path}: {passed.reason}" for passed in found.passed_over]
    latest = found.latest
    if latest is not None and not is_below(latest.path, where):
        notes.append(f"skips the checkpoint {latest.path}: it lies outside {directory}")
        latest = None
    if latest is None:
        return None, tuple(notes)
    written_ms = int(latest.written_at * 1000)
    return ResumePoint(latest.step, str(latest.path), str(directory), written_ms, latest.unit), tuple(notes)


def variables(attempt: int, point: ResumePoint | None, arguments: Sequence[str]) -> dict[str, str]:
    """The variables of a new start that is the job's `attempt` and was told what to load."""
    told = {ATTEMPT: str(attempt)}
    if point is not None:
        told |= {RESUME_FROM: point.path, RESUME_STEP: str(point.step)}
    return told | ({ADDED: str(len(arguments))} if arguments else {})


def variables_to_choose(attempt: int, directory: str, words: Sequence[str]) -> dict[str, str]:
    """The variables of a new start that is the job's `attempt` and chooses its checkpoint when it begins."""
    told = {ATTEMPT: str(attempt)}
    return told | ({DIRECTORY: directory, TEMPLATE: json.dumps(list(words))} if directory else {})


def begin(argv: Sequence[str], environment: Mapping[str, str], *, restarts: int) -> ToldStart:
    """What a start runs, once it begins. `restarts`: how often SLURM itself has started this job again.

    A start that chooses looks now, and again after each such restart, which is an attempt of its own. A start
    that was told by an earlier executor loses that after a restart: the checkpoint is an old one by then.
    """
    kept = {name: value for name, value in environment.items() if name not in VARIABLES}
    told = {name: environment[name] for name in (RESUME_FROM, RESUME_STEP, ATTEMPT) if name in environment}
    if TRACE in environment and not restarts:
        kept[TRACE] = environment[TRACE]  # a restart by SLURM itself is no work of that incident
    directory = environment.get(DIRECTORY, "")
    if directory:
        point, notes = newest(directory)
        words = filled(json.loads(environment.get(TEMPLATE) or "[]"), point) if point else ()
        number = int(environment[ATTEMPT]) + restarts
        chosen = variables(number, point, ())
        extra = {RESUME_UNIT: point.unit, RESUME_WRITTEN: str(point.written_ms)} if point else {}
        return ToldStart((*argv, *words), kept | chosen, extra, notes)
    if not restarts:
        return ToldStart(tuple(argv), kept | told, {})
    added = environment.get(ADDED, "0")
    words_left = len(argv) - int(added if added.isdecimal() else 0)
    return ToldStart(tuple(argv[: max(words_left, 1)]), kept, {})
