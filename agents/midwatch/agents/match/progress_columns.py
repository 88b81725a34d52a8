"""Progress lines of a chunk: which rule reads a line, and the columns of one rule and file. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
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
_Place = tuple[int, int, int, int]
_Texts = tuple[str, ...]
_Columns = tuple[tuple[int, ...], _Texts, _Texts, _Texts, _Texts]
_form: Callable[[Row], bytes] = itemgetter(5)
_line_number: Callable[[_Place], int] = itemgetter(2)
_end: Callable[[_Place], int] = itemgetter(3)
Default = TypeVar("Default", int, None)


@dataclass(slots=True)
class ProgressColumns:
    """The lines of the rule so far, as columns: the hits, the fields of each `LinePlace`, and the times.

    A sign of life has no hit.
    """

    section: Section
    rule: str
    phase: Phase
    shows: Shows
    rows: list[Row] = field(default_factory=list)
    places: list[_Place] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def record(self, node: str) -> Progress:
        """The record of these lines."""
        rows, times = self.rows, self.times
        steps, totals, losses, grad_norms, counts = _columns(rows, len(times))
        return Progress(
            path=self.section.path,
            generation=self.section.generation.key(),
            rule=self.rule,
            phase=self.phase,
            steps=steps,
            ends=tuple(map(_end, self.places)),
            numbers=tuple(map(_line_number, self.places)),
            times=tuple(times),
            losses=losses if any(losses) else (),
            counts=counts if any(counts) else (),
            grad_norms=grad_norms if any(grad_norms) else (),
            total=next((total for total in map(_number, reversed(totals)) if total >= 0), None),
            rank=self.section.rank,
            last=self._shown(node, rows[-1], LinePlace._make(self.places[-1]), times[-1]) if rows else None,
            shows=self.shows,
        )

    def _shown(self, node: str, row: Row, place: LinePlace, time: float) -> Line:
        """A line of these, cut short."""
        _, text, start, end, *_ = row
        return line_of(node, self.section, text[start:end][:_SHOWN_BYTES], place, time)


def _columns(rows: Sequence[Row], size: int) -> _Columns:
    """What the lines print: steps, totals, losses, gradient norms and counts."""
    if not rows:
        unread = ("",) * size
        return (-1,) * size, unread, unread, unread, unread
    read = rows[0][0].reader(_READ)
    steps, totals, losses, grad_norms, epochs, batches, further = zip(
        *read([row[4] for row in rows], map(_form, rows)), strict=True
    )
    counts = (
        tuple(map(_count, epochs, batches, further)) if any(epochs) or any(batches) or any(further) else ()
    )
    return _numbers(steps), totals if any(totals) else (), losses, grad_norms, counts


def _numbers(texts: _Texts) -> tuple[int, ...]:
    """As `_number` for each text. Most often all of them are numbers, and none is too large."""
    try:
        numbers = tuple(map(int, texts))
    except ValueError:
        return tuple(map(_number, texts))
    return numbers if max(map(abs, numbers)) <= _LARGEST else tuple(map(_number, texts))


def strongest(rows: list[Row]) -> list[Row]:
    """Of the progress rules that read one line, those that know most of it.

    A batch of an evaluation or of the preparation is no training. A number that climbs says less than any
    other progress.
    """
    if len(rows) < 2:
        return rows
    weights = [_weight(row[0].rule) for row in rows]
    best = max(weights)
    return [row for row, weight in zip(rows, weights, strict=True) if weight == best]


def _weight(rule: Rule) -> int:
    if rule.shows is RuleShows.CLIMB:
        return 0
    if rule.fallback:
        return 1 + (rule.phase is RulePhase.EVALUATION)
    return 3 + (rule.phase is RulePhase.EVALUATION or rule.phase is RulePhase.STARTUP)


def columns_of(rule: Rule, section: Section) -> ProgressColumns:
    """Empty columns for lines of the rule."""
    phase = str(rule.phase) if rule.phase else "training"
    return ProgressColumns(section, rule.name, cast(Phase, phase), cast(Shows, str(rule.shows)))


def sign_of_life(section: Section, place: LinePlace) -> ProgressColumns:
    """The job printed a line: progress without a step, whatever the line says."""
    columns = ProgressColumns(section, ANY_LINE, "training", "life")
    columns.places.append(place)
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
