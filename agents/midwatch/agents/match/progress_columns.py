"""Progress lines of a chunk: which rule reads a line, and the columns of one rule and file. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, cast

from midwatch.rules.matching.hits import GroupReader, Row
from midwatch.rules.model import Phase as RulePhase
from midwatch.rules.model import Rule
from midwatch.rules.model import Shows as RuleShows
from midwatch.streams.lines.normalise import LinePlace
from midwatch.streams.records import Line, Phase, Progress, Section, Shows

ANY_LINE = "any_line"  # the rule's name in progress, where any new line ends the silence
_LARGEST = 2**53
_READ = ("step", "total_steps", "loss", "grad_norm", "epoch", "batch", "count")
"""The groups of a progress rule that a record has a column for."""
Default = TypeVar("Default", int, None)


@dataclass(slots=True)
class ProgressColumns:
    """The lines taken so far. `last` is the latest of them, where the record shows it."""

    section: Section
    rule: str
    phase: Phase
    shows: Shows
    total: int | None = None
    steps: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    grad_norms: list[str] = field(default_factory=list)
    last: tuple[Row, LinePlace] | None = None
    read: GroupReader | None = None
    total_text: str = ""

    def take(self, row: Row, place: LinePlace, time: float) -> None:
        """Add one line of the rule."""
        compiled, text = row[0], row[4]
        if self.read is None:
            self.read = compiled.reader(_READ)
        step, total, loss, grad_norm, epoch, batch, count = self.read(text)
        self.steps.append(whole_number(step, -1))
        self.ends.append(place.end)
        self.numbers.append(place.number)
        self.times.append(time)
        self.last = (row, place)
        self.losses.append(loss)
        self.counts.append(_count(epoch, batch or count))
        self.grad_norms.append(grad_norm)
        if total and total != self.total_text and (number := whole_number(total, -1)) >= 0:
            self.total, self.total_text = number, total

    def record(self, last: Line | None) -> Progress:
        """The record of these lines. `last`: the latest of them, cut short."""
        return Progress(
            path=self.section.path,
            generation=self.section.generation.key(),
            rule=self.rule,
            phase=self.phase,
            steps=tuple(self.steps),
            ends=tuple(self.ends),
            numbers=tuple(self.numbers),
            times=tuple(self.times),
            losses=tuple(self.losses) if any(self.losses) else (),
            counts=tuple(self.counts) if any(self.counts) else (),
            grad_norms=tuple(self.grad_norms) if any(self.grad_norms) else (),
            total=self.total,
            rank=self.section.rank,
            last=last,
            shows=self.shows,
        )


def strongest(rows: list[Row]) -> list[Row]:
    """Of the progress rules that read one line, those that know most of it.

    A batch of an evaluation is no training. A number that climbs says less than any other progress.
    """
    if len(rows) < 2:
        return rows
    weights = [_weight(row[0].rule) for row in rows]
    best = max(weights)
    return [row for row, weight in zip(rows, weights, strict=True) if weight == best]


def _weight(rule: Rule) -> int:
    if rule.shows is RuleShows.CLIMB:
        return 0
    return 1 + 2 * (not rule.fallback) + (rule.phase is RulePhase.EVALUATION)


def columns_of(rule: Rule, section: Section) -> ProgressColumns:
    """Empty columns for lines of the rule."""
    phase = str(rule.phase) if rule.phase else "training"
    return ProgressColumns(section, rule.name, cast(Phase, phase), cast(Shows, str(rule.shows)))


def sign_of_life(section: Section, place: LinePlace) -> ProgressColumns:
    """The job printed a line: progress without a step, whatever the line says."""
    columns = ProgressColumns(section, ANY_LINE, "training", "life")
    columns.steps.append(-1)
    columns.ends.append(place.end)
    columns.numbers.append(place.number)
    columns.times.append(section.read_at)
    return columns


def _count(epoch: str, batch: str) -> str:
    """How far a loop is that prints no step: its epoch, its batch, or `EPOCH:BATCH`.

    A batch counts anew in each epoch, so it stands behind its epoch.
    """
    return f"{epoch}:{batch}" if epoch and batch else epoch or batch


def whole_number(text: str | None, default: Default) -> int | Default:
    """The number in the text; `default` if it has none, or one that no record can hold."""
    try:
        number = int(text) if text is not None else default
    except ValueError:
        return default
    return default if number is None or abs(number) > _LARGEST else number
