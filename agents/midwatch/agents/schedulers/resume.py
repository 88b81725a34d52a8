"""Variables and arguments that tell a new start which checkpoint to load. Pure but for the look at paths.

The arguments come from a template of words in the signed spec. A placeholder fills a place within one word,
and no shell reads the result. A path that lies outside the checkpoint directory is never handed on.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from midwatch.streams.errors import UsageError

FROM, STEP, ATTEMPT = "MIDWATCH_RESUME_FROM", "MIDWATCH_RESUME_STEP", "MIDWATCH_ATTEMPT"
ADDED = "MIDWATCH_RESUME_ARGUMENTS"
"""How many words at the end of the command line the template gave. The shim drops them at a requeue."""
TRACE = "TRACEPARENT"
"""The span under which a trainer's own spans hang, in the form of W3C Trace Context."""
VARIABLES = (FROM, STEP, ATTEMPT, ADDED, TRACE)

_PLACEHOLDERS = ("checkpoint", "step", "directory")
_PLACEHOLDER = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A complete checkpoint that a start is told to load. `written_ms`: by the file system's clock."""

    step: int
    path: str
    directory: str
    written_ms: int


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


def variables(
    attempt: int, point: ResumePoint | None, arguments: Sequence[str], trace: str = ""
) -> dict[str, str]:
    """The variables of a new start that is the job's `attempt`. `trace`: the span that it hangs under."""
    told = {ATTEMPT: str(attempt)} | ({TRACE: trace} if trace else {})
    if point is not None:
        told |= {FROM: point.path, STEP: str(point.step)}
    return told | ({ADDED: str(len(arguments))} if arguments else {})


def is_below(path: Path, directory: Path) -> bool:
    """Whether the path, with every link followed, lies within the directory and is not the directory."""
    return directory.resolve() in path.resolve().parents
