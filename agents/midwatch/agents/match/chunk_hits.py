"""Chunk hits: one chunk of lines becomes one record of hits. Pure: equal chunks and rules give equal records.

A record has at most three full hits for each rule, role and rank, and the last failure line beyond them.
Other hits are counts, as evidence that no threshold reads. Progress travels as columns, because a healthy
job prints little else.

A rule's role holds only if the line itself reports the failure. Otherwise the hit is context, in six cases:

- A traceback quotes the line as source code.
- Python ignored the exception.
- The writer calls the line a warning.
- A text cites the line in backticks.
- The words before it only suppose it ("may have", "if").
- Ray repeats it for workers that printed the same, and the first of these lines was not cut away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import NamedTuple, cast

from midwatch.agents.match.call_sites import reclassified
from midwatch.agents.match.code_listings import is_listed
from midwatch.agents.match.echoed_lines import stands_alone
from midwatch.agents.match.empty_success import is_empty_success
from midwatch.agents.match.ended_nothing import ended_nothing
from midwatch.agents.match.error_stacks import is_outer
from midwatch.agents.match.hedges import only_mentions
from midwatch.agents.match.listed_below import lists
from midwatch.agents.match.own_words import own_words
from midwatch.agents.match.printed_samples import Samples
from midwatch.agents.match.progress_columns import (
    ANY_LINE,
    ProgressColumns,
    columns_of,
    line_of,
    sign_of_life,
    whole_number,
)
from midwatch.agents.match.specific_rows import ANY_EXCEPTION, most_specific
from midwatch.agents.match.tracebacks import TracebackPlace, place_of
from midwatch.rules.matching.compiler import RuleSet
from midwatch.rules.matching.hits import CompiledRule, Match, Row
from midwatch.rules.model import Role, Rule
from midwatch.streams.lines.log_levels import is_warning, stands_aside
from midwatch.streams.lines.normalise import LinePlace, line_places, places
from midwatch.streams.lines.times import line_time
from midwatch.streams.records import (
    Chunk,
    Hit,
    HitCount,
    Hits,
    Phase,
    Progress,
    Rate,
    Section,
    Stop,
)
from midwatch.streams.records import Mode as RecordMode
from midwatch.streams.records import Role as RecordRole

FULL_HITS = 3
_EXAMINED = 64  # hits of a rule and file in a chunk whose context is read; a storm repeats itself
_HITS = 128
_COUNTS = 256
_LINE_BYTES = 2048

_start: Callable[[Row], int] = itemgetter(2)
_span: Callable[[Row], tuple[int, int]] = itemgetter(2, 3)
_as_match: Callable[[type[Match], Row], Match] = tuple.__new__
_as_place: Callable[[type[LinePlace], tuple[int, int, int, int]], LinePlace] = tuple.__new__

When = Callable[[Section, bytes, int, int, bytes], float]
"""The time of a matched line (seconds, the node's clock).

The arguments are its section, the section's text, where the line begins and ends in it, and its form.
"""


def when_read(section: Section, text: bytes, start: int, end: int, form: bytes | None = None) -> float:
    """The printed time of the line if it lies between the reads around the line, else the later read's."""
    return line_time(text[start:end], section.read_before, section.read_at, form=form)


def match(
    chunk: Chunk,
    rules: RuleSet,
    bundle: str,
    logged_ms: int,
    *,
    when: When = when_read,
    any_line: bool = False,
) -> Hits | None:
    """The hits of the rules in the chunk; None without a hit.

    `any_line`: the last line of each section counts as progress without a step, so the job is not silent.
    """
    found = _Found(chunk.origin.node, when)
    start = 0
    for section in chunk.sections:
        text = chunk.text[start : start + section.size]
        start += section.size
        rows = most_specific(_all(rules, text))
        fresh = _behind_context(section, text)
        progress: dict[CompiledRule, ProgressColumns] = {}
        for row, place in zip(rows, line_places(section, text, map(_span, rows)), strict=True):
            compiled, _, begin, end, _, form = row
            if begin < fresh:
                continue
            if compiled.rule.role is not Role.PROGRESS:
                found.take(section, text, row, place)
                continue
            columns = progress.get(compiled)
            if columns is None:
                columns = progress[compiled] = found.columns_of(section, compiled.rule)
            columns.rows.append(row)
            columns.places.append(place)
            columns.times.append(when(section, text, begin, end, form))
        found.end_watches(section, text, rules.match_stops(text))
        if any_line and section.lines > section.context:
            found.sign_of_life(section, next(places(section, text, [max(len(text) - 1, 0)])))
    if found.empty():
        return None
    found.keep_latest()
    return Hits(
        origin=chunk.origin,
        bundle=bundle,
        hits=tuple(found.hits),
        counts=tuple(_counts(found)),
        progress=tuple(found.progress()),
        stops=tuple(found.stops.values()),
        ends={section.generation.key(): section.end for section in chunk.sections},
        logged_ms=logged_ms,
    )


def _all(rules: RuleSet, text: bytes) -> Sequence[Row]:
    """The hits in lines and blocks, by line. A block's hits precede those of its last line."""
    in_lines, in_blocks = rules.match_chunk(text).rows, rules.match_blocks(text)
    return sorted([*in_blocks, *in_lines], key=_start) if in_blocks else in_lines


def _behind_context(section: Section, text: bytes) -> int:
    """The offset of the first line that the section does not repeat from an earlier chunk."""
    offset = 0
    for _ in range(section.context):
        offset = text.find(b"\n", offset) + 1 or len(text)
    return offset


@dataclass(slots=True)
class _Count:
    count: int
    first: int
    last: int
    path: str


_SERVICE = "service_of_the_side"
"""A rule of context. The error of such a service is a cause where nothing of the script caught it."""
_Unexamined = tuple[Section, bytes, Row, tuple[int, int, int, int]]
"""A hit as `_Found.take` gets it."""


class _Examined(NamedTuple):
    """A hit, and what its line reports."""

    section: Section
    text: bytes
    hit: Match
    place: LinePlace
    role: RecordRole
    aside: str
    traceback: TracebackPlace


@dataclass(slots=True)
class _Found:
    node: str
    when: When
    hits: list[Hit] = field(default_factory=list)
    columns: dict[tuple[str, str], ProgressColumns] = field(default_factory=dict)
    full: dict[tuple[str, str, str, int | None], int] = field(default_factory=dict)
    examined: dict[tuple[str, str], int] = field(default_factory=dict)
    further: dict[tuple[str, str, int | None], _Count] = field(default_factory=dict)
    stops: dict[tuple[str, str], Stop] = field(default_factory=dict)
    latest: dict[tuple[str, str, int | None], _Unexamined] = field(default_factory=dict)
    samples: Samples = field(default_factory=partial(Samples, b""))

    def empty(self) -> bool:
        return not self.hits and not self.columns and not self.stops

    def end_watches(self, section: Section, text: bytes, ends: Sequence[Match]) -> None:
        """Note for each rule the first line of a file that ends the rule's watch."""
        generation, fresh = section.generation.key(), _behind_context(section, text)
        for hit in ends:
            if hit.start < fresh or (hit.rule.name, generation) in self.stops:
                continue
            place = next(places(section, text, [hit.start]))
            self.stops[hit.rule.name, generation] = Stop(
                rule=hit.rule.name,
                path=section.path,
                generation=generation,
                number=place.number,
                end=place.end,
                time=self.when(section, text, hit.start, hit.end, hit.form),
            )

    def columns_of(self, section: Section, rule: Rule) -> ProgressColumns:
        """The columns of a rule that shows progress, for the lines of one file."""
        return self.columns.setdefault((section.generation.key(), rule.name), columns_of(rule, section))

    def take(self, section: Section, text: bytes, row: Row, fields: tuple[int, int, int, int]) -> None:
        """Note one hit of any other rule. `fields` are those of its `LinePlace`.

        What the line reports is examined only while a full hit may follow. The rest is counted.
        """
        rule = row[0].rule
        name, path, rank = rule.name, section.path, section.rank
        examined = self.examined.get((name, path), 0)
        if (
            self.full.get((name, rule.role, path, rank), 0) >= FULL_HITS
            or examined >= _EXAMINED
            or len(self.hits) >= _HITS
        ):
            self._count(name, path, rank, fields[2])
            if rule.role is not Role.CONTEXT or name == _SERVICE:
                self.latest[name, path, rank] = (section, text, row, fields)
            return
        self.examined[name, path] = examined + 1
        if not self._keep(self._examined(section, text, row, fields)):
            self._count(name, path, rank, fields[2])

    def _examined(
        self, section: Section, text: bytes, row: Row, fields: tuple[int, int, int, int]
    ) -> _Examined:
        """What a hit's line reports, by its place in a traceback and by its own words."""
        rule = row[0].rule
        hit, place = _as_match(Match, row), _as_place(LinePlace, fields)
        shown = is_outer(text, hit.start, hit.end) or is_listed(text, hit.start, hit.end)
        traceback = TracebackPlace("quoted") if shown else place_of(text, hit.start, hit.end, hit.form)
        if ended_nothing(text, hit):
            traceback = TracebackPlace("ignored")
        aside = _aside(hit, traceback)
        if aside == "repeated" and stands_alone(section, text, hit.start, hit.end):
            aside = ""
        if not aside and rule.role is not Role.CONTEXT and self._is_of_a_sample(text, hit):
            traceback = TracebackPlace("quoted")
            aside = _aside(hit, traceback)
        if rule.role is Role.SUCCESS and is_empty_success(text, hit.start, hit.end):
            aside = "mentioned"
        role = cast(RecordRole, "context" if aside else str(rule.role))
        if rule.name == _SERVICE and traceback.left:
            role = "cause"  # nothing caught it, so the run needed it
        return _Examined(section, text, hit, place, role, aside, traceback)

    def _is_of_a_sample(self, text: bytes, hit: Match) -> bool:
        """Whether it is in a printed sample. A chunk is searched for samples once it holds a failure."""
        if self.samples.text is not text:
            self.samples = Samples(text)
        return self.samples.hold(hit.start, hit.end)

    def keep_latest(self) -> None:
        """Keep each rule's last line, too, while there is room. The job may have got over the first ones."""
        kept = False
        for key, latest in self.latest.items():
            if len(self.hits) < _HITS and self._keep(self._examined(*latest), beyond=1):
                self.further[key].count -= 1
                kept = True
        if kept:
            self.hits.sort(key=lambda hit: (hit.generation, hit.line.number))

    def _keep(self, examined: _Examined, *, beyond: int = 0) -> bool:
        """Keep a hit in full, unless there are enough like it. `beyond`: how many failures more to take."""
        section, text, hit, place, role, aside, traceback = examined
        key = (hit.rule.name, role, section.path, section.rank)
        known = self.full.get(key, 0)
        if known >= FULL_HITS + (0 if role == "context" else beyond):
            return False
        self.full[key] = known + 1
        time, excused = self.when(section, text, hit.start, hit.end, hit.form), None
        if traceback.handled is not None and (traceback.probe or role == "context"):
            excused = next(places(section, text, [traceback.handled])).number
        if traceback.asserts is not None and hit.rule.fallback:
            hit, place = (
                _moved(hit, text, traceback.asserts),
                next(places(section, text, [traceback.asserts])),
            )
        full = reclassified(_full(self.node, section, hit, place, time), traceback.frames)
        if traceback.thread:
            full = replace(full, captures={**full.captures, "in_a_thread": "1"})
        if hit.rule.fallback and hit.rule.error_type == ANY_EXCEPTION and lists(text, hit.start, hit.end):
            full = replace(full, captures={**full.captures, "lists": "1"})
        if traceback.left:
            full = replace(full, captures={**full.captures, "left_the_script": "1"})
        full = replace(full, role=role) if hit.rule.name == _SERVICE else full
        if role == "context":
            severity = _context_severity(hit, traceback, full.severity)
            full = replace(full, role=role, severity=severity, aside=aside)
        self.hits.append(full if excused is None else replace(full, excuses=excused))
        return True

    def sign_of_life(self, section: Section, last: LinePlace) -> None:
        """Note that the job printed a line, as progress without a step."""
        self.columns[section.generation.key(), ANY_LINE] = sign_of_life(section, last)

    def _count(self, rule: str, path: str, rank: int | None, number: int) -> None:
        more = self.further.get((rule, path, rank))
        if more is None:
            self.further[rule, path, rank] = _Count(1, number, number, path)
        else:
            more.count += 1
            more.last = number

    def progress(self) -> Iterator[Progress]:
        return (columns.record(self.node) for columns in self.columns.values())


def _aside(hit: Match, traceback: TracebackPlace) -> str:
    """Why the line reports no failure although its rule looks for one; "" if it reports one, or need not."""
    rule = hit.rule
    if rule.role not in (Role.CAUSE, Role.CONSEQUENCE):
        return ""
    counts = not rule.fallback or _ended_the_program(rule, traceback)
    if traceback.kind != "reported" and not (traceback.kind == "beside" and counts):
        return str(traceback.kind)
    words = own_words(hit)
    return words.aside if rule.any_level or traceback.passed_on else words.quiet or words.aside


def _ended_the_program(rule: Rule, traceback: TracebackPlace) -> bool:
    """Whether somebody interrupted the program while a tracker's code ran; not while it was at its exit."""
    return rule.error_type == "user_interrupt" and not any(
        file.endswith(_AT_EXIT) for file, _ in traceback.frames
    )


_AT_EXIT = ("multiprocessing/util.py", "multiprocessing/resource_tracker.py")


def _context_severity(hit: Match, traceback: TracebackPlace, severity: str) -> str:
    """The severity of a context hit. Only a warning, or a rule for context, can explain the end of a run.

    Quoted or cited lines, ignored exceptions and code beside the job are "info".
    """
    if traceback.kind != "reported" or stands_aside(hit.line) or only_mentions(hit):
        return "info"
    if hit.rule.role is Role.CONTEXT:
        return severity
    return "warning" if is_warning(hit.line) else "info"


def _moved(hit: Match, text: bytes, start: int) -> Match:
    """The same hit on another line of the text: the `assert` says more than a bare AssertionError."""
    return hit.on_line(start, text.index(b"\n", start))


def _full(node: str, section: Section, hit: Match, place: LinePlace, time: float) -> Hit:
    rule = hit.rule
    captures = hit.captures() if rule.block or hit.compiled.expression.search(hit.text) else {}
    line = line_of(node, section, hit.line[:_LINE_BYTES], place, time)
    claim = whole_number(captures.get("rank"), None)
    if claim is not None and claim >= 0:
        line = replace(line, claimed_rank=claim)
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
        limit=Rate(rule.rate_limit.hits, rule.rate_limit.seconds) if rule.rate_limit else None,
    )


def _counts(found: _Found) -> Iterator[HitCount]:
    for (rule, path, rank), more in list(found.further.items())[:_COUNTS]:
        if not more.count:
            continue
        yield HitCount(rule, rank, more.count, more.first, more.last, path)
