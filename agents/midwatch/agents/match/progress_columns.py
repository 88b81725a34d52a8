"""Progress lines of a chunk: which rule reads a line, and the columns of one rule and file. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, cast

from midwatch.rules.matching.hits import Row
from midwatch.rules.model import Phase as RulePhase
from midwatch.rules.model import Rule
from midwatch.rules.model import Shows as RuleShows
from midwatch.streams.lines.blocks import claimed_rank
from midwatch.streams.lines.normalise import LinePlace
from midwatch.streams.records import Line, Phase, Progress, Section, Shows

ANY_LINE = "any_line"  # the rule's name in progress, where any new line ends the silence
_LARGEST = 2**53
_READ = ("step", "total_steps", "loss", "grad_norm", "epoch", "batch", "count")
"""The groups of a progress rule that a record has a column for."""
_SHOWN_BYTES = 512
_Texts = tuple[str, ...]
_Columns = tuple[tuple[int, ...], _Texts, _Texts, _Texts, _Texts]
Default = TypeVar("Default", int, None)


@dataclass(slots=True)
class ProgressColumns:
    """The lines taken so far, and their places and times. A sign of life has no line.

    `offset` is that of the latest line.
    """

    section: Section
    rule: str
    phase: Phase
    shows: Shows
    rows: list[Row] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    offset: int = 0

    def take(self, row: Row, place: tuple[int, int, int, int], time: float) -> None:
        """Add one line of the rule, given the fields of its `LinePlace`."""
        _, self.offset, number, end = place
        self.rows.append(row)
        self.numbers.append(number)
        self.ends.append(end)
        self.times.append(time)

    def record(self, node: str) -> Progress:
        """The record of these lines."""
        steps, totals, losses, grad_norms, counts = self._columns()
        return Progress(
            path=self.section.path,
            generation=self.section.generation.key(),
            rule=self.rule,
            phase=self.phase,
            steps=steps,
            ends=tuple(self.ends),
            numbers=tuple(self.numbers),
            times=tuple(self.times),
            losses=losses if any(losses) else (),
            counts=counts if any(counts) else (),
            grad_norms=grad_norms if any(grad_norms) else (),
            total=next((total for total in map(_number, reversed(totals)) if total >= 0), None),
            rank=self.section.rank,
            last=self._last(node),
            shows=self.shows,
        )

    def _columns(self) -> _Columns:
        if not self.rows:
            unread = ("",) * len(self.numbers)
            return (-1,) * len(unread), unread, unread, unread, unread
        read = self.rows[0][0].reader(_READ)
        steps, totals, losses, grad_norms, epochs, batches, further = zip(
            *(read(row[4]) for row in self.rows), strict=True
        )
        counts = (
            tuple(map(_count, epochs, batches, further))
            if any(epochs) or any(batches) or any(further)
            else ()
        )
        return tuple(map(_number, steps)), totals, losses, grad_norms, counts

    def _last(self, node: str) -> Line | None:
        """The latest of these lines, cut short."""
        if not self.rows:
            return None
        _, text, start, end, _ = self.rows[-1]
        place = LinePlace(0, self.offset, self.numbers[-1], self.ends[-1])
        return line_of(node, self.section, text[start:end][:_SHOWN_BYTES], place, self.times[-1])


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
    columns.numbers.append(place.number)
    columns.ends.append(place.end)
    columns.times.append(section.read_at)
    return columns


def _count(epoch: str, batch: str, further: str) -> str:
    """How far a loop is that prints no step: its epoch, its batch, or `EPOCH:BATCH`.

    A batch counts anew in each epoch, so it stands behind its epoch.
    """
    within = batch or further
    return f"{epoch}:{within}" if epoch and within else epoch or within


def _number(text: str) -> int:
    """The whole number that a line prints; -1 without one."""
    return whole_number(text, -1) if text else -1


def line_of(node: str, section: Section, raw: bytes, place: LinePlace, time: float) -> Line:
    """The record of a line, or of as much of it as `raw` holds."""
    text = raw.decode("utf-8", "replace")
    return Line(
        text=text,
        path=section.path,
        number=place.number,
        offset=place.offset,
        time=time,
        node=node,
        rank=section.rank,
        claimed_rank=claimed_rank(raw.lstrip()),
        raw=raw if "�" in text else None,
    )


def whole_number(text: str | None, default: Default) -> int | Default:
    """The number in the text; `default` if it has none, or one that no record can hold."""
    try:
        number = int(text) if text is not None else default
    except ValueError:
        return default
    return default if number is None or abs(number) > _LARGEST else number
