"""From one chunk of lines to one record of hits. Pure: the same chunk and rules give the same record.

At most three full hits for each rule, role and rank; further ones are counted, as evidence that no
threshold reads. Progress travels as columns, because a healthy job prints little else.

A rule says what its line means if the line is said in earnest. It is not where a traceback quotes it as
source code, where Python ignored the exception, or where its writer calls it a warning: such a hit is
context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeVar, cast

from midwatch.agents.log_levels import is_quiet
from midwatch.agents.tracebacks import Place as Standing
from midwatch.agents.tracebacks import begins_line, place_of
from midwatch.rules.compiler import RuleSet
from midwatch.rules.matcher import Match
from midwatch.rules.model import Role, Rule
from midwatch.streams.line_times import line_time
from midwatch.streams.lines import Place, places
from midwatch.streams.records import Chunk, Hit, HitCount, Hits, Line, Phase, Progress, Section
from midwatch.streams.records import Mode as RecordMode
from midwatch.streams.records import Role as RecordRole

FULL_HITS = 3
ANY_LINE = "any_line"  # stands for a rule where any new line ends the silence
_ANY_EXCEPTION = "exception"  # the type that says least
_LOOKED_AT = 64  # hits of a rule and rank in a chunk whose surroundings are read; a storm repeats itself
_HITS = 128
_COUNTS = 256
_LINE_BYTES = 2048
_LARGEST = 2**53
Otherwise = TypeVar("Otherwise", int, None)
_CLAIMED_RANK = re.compile(rb"\A\s*\[rank(\d{1,6})\]:")


When = Callable[[Section, bytes, Match], float]
"""The time of a matched line, given its section and the section's text (seconds, the node's clock)."""


def when_read(section: Section, text: bytes, hit: Match) -> float:  # noqa: ARG001  # one signature for all
    """The time printed in the line if it lies between the two reads around it, else the present read's."""
    return line_time(hit.line, section.read_before, section.read_at)


def match(
    chunk: Chunk,
    rules: RuleSet,
    bundle: str,
    logged_ms: int,
    *,
    when: When = when_read,
    any_line: bool = False,
) -> Hits | None:
    """What the rules find in the chunk; None if nothing.

    With `any_line` a section's last line counts as progress without a step: the job is not silent.
    """
    found = _Found(chunk.origin.node)
    start = 0
    for section in chunk.sections:
        text = chunk.text[start : start + section.size]
        start += section.size
        hits = _telling(hit for hit in rules.match_chunk(text) if _placed(hit))
        for hit, place in zip(hits, places(section, text, (hit.start for hit in hits)), strict=True):
            if hit.line_number >= section.context:
                found.take(section, text, hit, place, when(section, text, hit))
        if any_line and section.lines > section.context:
            found.sign_of_life(section, next(places(section, text, [max(len(text) - 1, 0)])))
    if found.empty():
        return None
    return Hits(
        origin=chunk.origin,
        bundle=bundle,
        hits=tuple(found.hits),
        counts=tuple(_counts(found)),
        progress=tuple(column.record() for column in found.columns.values()),
        ends={section.generation.key(): section.end for section in chunk.sections},
        logged_ms=logged_ms,
    )


def _placed(hit: Match) -> bool:
    """Whether the hit stands where its rule wants it."""
    return not hit.rule.at_start or begins_line(hit.line, hit.spans()[0][0])


def _telling(hits: Iterable[Match]) -> list[Match]:
    """Without the fallbacks on lines of which another rule knows more; progress tells of no failure."""
    told: list[Match] = []
    for _, same_line in groupby(hits, key=lambda hit: hit.start):
        found = list(same_line)
        if len(found) == 1:
            told += found
            continue
        progress = [hit for hit in found if hit.rule.role is Role.PROGRESS]
        others = [hit for hit in found if hit.rule.role is not Role.PROGRESS]
        known = [hit for hit in others if not hit.rule.fallback]
        known = known or [hit for hit in others if not _knows_nothing(hit.rule)]
        told += progress + (known or others)
    return told


def _knows_nothing(rule: Rule) -> bool:
    """That something failed is all that such a rule can say."""
    return rule.fallback and rule.role is Role.CAUSE and rule.error_type == _ANY_EXCEPTION


@dataclass(slots=True)
class _Column:
    section: Section
    rule: str
    phase: Phase
    total: int | None = None
    steps: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    grad_norms: list[str] = field(default_factory=list)

    def record(self) -> Progress:
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
            grad_norms=tuple(self.grad_norms) if any(self.grad_norms) else (),
            total=self.total,
            rank=self.section.rank,
        )


@dataclass(slots=True)
class _More:
    count: int
    first: int
    last: int
    path: str


@dataclass(slots=True)
class _Found:
    node: str
    hits: list[Hit] = field(default_factory=list)
    columns: dict[tuple[str, str], _Column] = field(default_factory=dict)
    full: dict[tuple[str, str, str, int | None], int] = field(default_factory=dict)
    looked_at: dict[tuple[str, str], int] = field(default_factory=dict)
    more: dict[tuple[str, str, int | None], _More] = field(default_factory=dict)

    def empty(self) -> bool:
        return not self.hits and not self.columns

    def take(self, section: Section, text: bytes, hit: Match, place: Place, time: float) -> None:
        if hit.rule.role is Role.PROGRESS:
            self._progress(section, hit, place, time)
            return
        name, path, rank = hit.rule.name, section.path, section.rank
        looked_at = self.looked_at.get((name, path), 0)
        self.looked_at[name, path] = looked_at + 1
        if looked_at >= _LOOKED_AT or len(self.hits) >= _HITS:
            self._count(name, path, rank, place)
            return
        standing = place_of(text, hit.start, hit.end)
        role = _role(hit, standing)
        seen = self.full.get((name, role, path, rank), 0)
        if seen >= FULL_HITS:
            self._count(name, path, rank, place)
            return
        self.full[name, role, path, rank] = seen + 1
        excused = None
        if standing.handled is not None and (standing.probe or role == "context"):
            excused = next(places(section, text, [standing.handled])).number
        if standing.asserts is not None and hit.rule.fallback:
            hit, place = _moved(hit, text, standing.asserts), next(places(section, text, [standing.asserts]))
        full = _full(self.node, section, hit, place, time)
        self.hits.append(replace(full, role=role, excuses=excused))

    def sign_of_life(self, section: Section, last: Place) -> None:
        """The job printed something; that is all that is said."""
        column = _Column(
            section, ANY_LINE, "training", None, [-1], [last.end], [last.number], [section.read_at]
        )
        self.columns[section.generation.key(), ANY_LINE] = column

    def _count(self, rule: str, path: str, rank: int | None, place: Place) -> None:
        more = self.more.setdefault((rule, path, rank), _More(0, place.number, place.number, path))
        more.count += 1
        more.last = place.number

    def _progress(self, section: Section, hit: Match, place: Place, time: float) -> None:
        captures = hit.captures()
        key = (section.generation.key(), hit.rule.name)
        phase = cast(Phase, str(hit.rule.phase) if hit.rule.phase else "training")
        column = self.columns.setdefault(key, _Column(section, hit.rule.name, phase))
        column.steps.append(_whole(captures.get("step"), -1))
        column.ends.append(place.end)
        column.numbers.append(place.number)
        column.times.append(time)
        column.losses.append(captures.get("loss", ""))
        column.grad_norms.append(captures.get("grad_norm", ""))
        total = _whole(captures.get("total_steps"), -1)
        if total >= 0:
            column.total = total


def _role(hit: Match, standing: Standing) -> RecordRole:
    rule = hit.rule
    if rule.role not in (Role.CAUSE, Role.CONSEQUENCE):
        return cast(RecordRole, str(rule.role))
    if standing.standing != "said" or (not rule.any_level and is_quiet(hit.line)):
        return "context"
    return cast(RecordRole, str(rule.role))


def _moved(hit: Match, text: bytes, start: int) -> Match:
    """The same hit on another line of the text: a bare AssertionError tells nothing, its `assert` does."""
    return hit._replace(start=start, end=text.index(b"\n", start))


def _full(node: str, section: Section, hit: Match, place: Place, time: float) -> Hit:
    rule, raw = hit.rule, hit.line[:_LINE_BYTES]
    text = raw.decode("utf-8", "replace")
    captures = hit.captures() if hit.compiled.expression.search(hit.line) else {}
    claimed = _CLAIMED_RANK.match(raw)
    claim = _whole(captures.get("rank") or (claimed[1].decode() if claimed else None), None)
    line = Line(
        text=text,
        path=section.path,
        number=place.number,
        offset=place.offset,
        time=time,
        node=node,
        rank=section.rank,
        claimed_rank=None if claim is None or claim < 0 else claim,
        raw=raw if "�" in text else None,
    )
    return Hit(
        rule=rule.name,
        role=cast(RecordRole, str(rule.role)),
        error_type=rule.error_type,
        subsystem=rule.subsystem,
        severity=str(rule.severity),
        transient=rule.transient,
        line=line,
        end=place.end,
        generation=section.generation.key(),
        mode=cast(RecordMode, str(rule.mode)) if rule.mode else None,
        phase=cast(Phase, str(rule.phase)) if rule.phase else None,
        remedy=rule.remedy,
        captures=captures,
        fallback=rule.fallback,
    )


def _counts(found: _Found) -> Iterator[HitCount]:
    for (rule, path, rank), more in list(found.more.items())[:_COUNTS]:
        yield HitCount(rule, rank, more.count, more.first, more.last, path)


def _whole(text: str | None, otherwise: Otherwise) -> int | Otherwise:
    """The number that a line prints; a number that no record can hold is none."""
    try:
        number = int(text) if text is not None else otherwise
    except ValueError:
        return otherwise
    return otherwise if number is None or abs(number) > _LARGEST else number
