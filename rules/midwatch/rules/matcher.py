"""Which rules match which lines of a chunk: exactly what RE2's search says for each line and rule.

A chunk is scanned for triggers; only lines that hold one are asked, with one set of all rules each. What has
no trigger is asked of the whole chunk first, by a set that cannot see beyond a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from midwatch.rules.expressions import UNANCHORED, Expression, Span
from midwatch.rules.model import Rule
from midwatch.rules.scanner import Find
from midwatch.streams.errors import MidwatchError

SMALL_CHUNK = 2048
"""Bytes below which scanning for triggers costs more than it saves."""
PROBE = 2048
"""Bytes at a chunk's start that tell its kind: where most lines hold a trigger, every line is asked."""

FindRules = Callable[[bytes], Sequence[int]]


class MatcherDisagreement(MidwatchError):
    """Two ways of matching gave different answers: a defect of the engine, not of the rule."""

    def __init__(self, rule: Rule, line: bytes) -> None:
        super().__init__(
            f"the set and the expression of rule {rule.name!r} disagree on {line[:200]!r}",
            where=str(rule.location),
            remedy="Report the rule and the line: this is a defect of midwatch or of RE2.",
        )


class CompiledRule:
    """A rule with its expression, and which of its groups mean what."""

    __slots__ = ("expression", "index", "meanings", "raw_match", "rule")

    def __init__(self, rule: Rule, expression: Expression, index: int) -> None:
        self.rule = rule
        self.expression = expression
        self.raw_match = expression.raw_match
        self.index = index
        # Backwards, so that of two groups of one meaning the first that took part is written last.
        self.meanings = tuple(
            (rule.captures.get(name, name), number)
            for name, number in sorted(expression.group_numbers.items(), key=lambda item: -item[1])
        )


class Match(NamedTuple):
    """One rule found in one line of a chunk.

    `line_number` counts from 0 in the chunk; `start` and `end` are the byte offsets of the line in the
    chunk, without its line feed. Captures are taken only when asked for: they cost more than the match.
    """

    compiled: CompiledRule
    chunk: bytes
    line_number: int
    start: int
    end: int

    @property
    def rule(self) -> Rule:
        """The rule that matched."""
        return self.compiled.rule

    @property
    def line(self) -> bytes:
        """The line, without its line feed."""
        return self.chunk[self.start : self.end]

    def spans(self) -> Sequence[Span]:
        """The span of the match and of every group, as offsets in the line."""
        spans = self.compiled.expression.search(self.line)
        if spans is None:
            raise MatcherDisagreement(self.rule, self.line)
        return spans

    def captures(self) -> dict[str, str]:
        """What the named groups caught, by meaning; groups that took no part are left out.

        Bytes that are no UTF-8 become U+FFFD. Of two groups of one meaning the first that took part counts.
        """
        meanings = self.compiled.meanings
        if not meanings:
            return {}
        line = self.chunk[self.start : self.end]
        spans = self.compiled.raw_match(UNANCHORED, line, 0, len(line))
        if spans[0][0] < 0:
            raise MatcherDisagreement(self.rule, line)
        if line.isascii():
            text = line.decode("ascii")
            return {
                meaning: text[start:end]
                for meaning, number in meanings
                for start, end in (spans[number],)
                if start >= 0
            }
        return {
            meaning: line[start:end].decode("utf-8", "replace")
            for meaning, number in meanings
            for start, end in (spans[number],)
            if start >= 0
        }

    def __repr__(self) -> str:
        return f"<Match {self.rule.name} line {self.line_number} [{self.start}:{self.end}]>"


@dataclass(frozen=True, slots=True)
class Machinery:
    """The compiled parts that matching needs; made by the compiler only.

    `find_rules` gives the indexes of all rules found in a line, in no order. `find_triggers` gives the sorted
    offsets of triggers in a text, lower-cased first if `in_lower_case`. `gates` say of a whole text whether
    a rule without triggers may be in one of its lines; `every_line` stands for rules that no gate can hold.
    """

    compiled: tuple[CompiledRule, ...]
    find_rules: FindRules
    find_triggers: Find
    in_lower_case: bool
    gates: tuple[Callable[[bytes], Sequence[int]], ...]
    every_line: bool


def match_lines(machinery: Machinery, text: bytes) -> list[Match]:
    """The hits of a chunk, each line asked."""
    find_rules, compiled = machinery.find_rules, machinery.compiled
    hits: list[Match] = []
    add, make = hits.append, tuple.__new__
    start = 0
    for number, line in enumerate(lines_of(text)):
        end = start + len(line)
        found = find_rules(line)
        if found:
            for index in found if len(found) == 1 else sorted(found):
                add(make(Match, (compiled[index], text, number, start, end)))
        start = end + 1
    return hits


def match_chunk(machinery: Machinery, text: bytes) -> list[Match]:
    """The hits of a chunk, by the cheapest way that is exact."""
    if len(text) < SMALL_CHUNK or machinery.every_line or any(gate(text) for gate in machinery.gates):
        return match_lines(machinery, text)
    find, fold = machinery.find_triggers, machinery.in_lower_case
    probe = text[:PROBE]
    if _is_crowded(probe, find(probe.lower() if fold else probe)):
        return match_lines(machinery, text)
    return _match_around(machinery, text, find(text.lower() if fold else text))


def _is_crowded(text: bytes, offsets: list[int]) -> bool:
    """Whether three of four lines hold a trigger."""
    with_trigger = 0
    end = -1
    for offset in offsets:
        if offset < end:
            continue
        with_trigger += 1
        end = text.find(b"\n", offset)
        if end < 0:
            break
    return with_trigger * 4 > (text.count(b"\n") + 1) * 3


def _match_around(machinery: Machinery, text: bytes, offsets: list[int]) -> list[Match]:
    """The hits in the lines in which the offsets lie; the offsets are sorted."""
    find_rules, compiled = machinery.find_rules, machinery.compiled
    find, rfind, count = text.find, text.rfind, text.count
    hits: list[Match] = []
    add, make = hits.append, tuple.__new__
    size = len(text)
    number = counted = 0
    end = -1
    for offset in offsets:
        if offset < end:
            continue
        start = rfind(b"\n", 0, offset) + 1
        end = find(b"\n", offset)
        if end < 0:
            end = size
        found = find_rules(text[start:end])
        if found:
            number += count(b"\n", counted, start)
            counted = start
            for index in found if len(found) == 1 else sorted(found):
                add(make(Match, (compiled[index], text, number, start, end)))
    return hits


def lines_of(text: bytes) -> list[bytes]:
    """The lines of a chunk without their line feeds; a line feed at the end begins no further line."""
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines
