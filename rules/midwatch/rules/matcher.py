"""Which rules match which lines of a chunk: exactly what RE2's search says for each line and rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from midwatch.rules.model import Rule
from midwatch.streams.errors import MidwatchError

if TYPE_CHECKING:
    from midwatch.rules.expressions import Expression, Span


class MatcherDisagreement(MidwatchError):  # the disagreement is the error
    """The set found a rule in a line in which its expression finds nothing: a defect of the engine."""

    def __init__(self, rule: Rule, line: bytes) -> None:
        super().__init__(
            f"the set and the expression of rule {rule.name!r} disagree on {line[:200]!r}",
            where=str(rule.location),
            remedy="Report the rule and the line: this is a defect of midwatch or of RE2.",
        )


class CompiledRule:
    """A rule with its expression, and which of its groups mean what."""

    __slots__ = ("expression", "index", "meanings", "rule")

    def __init__(self, rule: Rule, expression: Expression, index: int) -> None:
        self.rule = rule
        self.expression = expression
        self.index = index
        self.meanings = tuple(
            (rule.captures.get(name, name), number)
            for name, number in sorted(expression.group_numbers.items(), key=lambda item: item[1])
        )


class Match:
    """One rule found in one line of a chunk.

    `line_number` counts from 0 in the chunk; `start` and `end` are the byte offsets of the line in the
    chunk, without its line feed. Captures are taken only when asked for: they cost more than the match.
    """

    __slots__ = ("_chunk", "_compiled", "end", "line_number", "start")

    def __init__(self, compiled: CompiledRule, chunk: bytes, line_number: int, start: int, end: int) -> None:
        self._compiled = compiled
        self._chunk = chunk
        self.line_number = line_number
        self.start = start
        self.end = end

    @property
    def rule(self) -> Rule:
        """The rule that matched."""
        return self._compiled.rule

    @property
    def line(self) -> bytes:
        """The line, without its line feed."""
        return self._chunk[self.start : self.end]

    def spans(self) -> Sequence[Span]:
        """The span of the match and of every group, as offsets in the line."""
        spans = self._compiled.expression.search(self.line)
        if spans is None:
            raise MatcherDisagreement(self.rule, self.line)
        return spans

    def captures(self) -> dict[str, str]:
        """What the named groups caught, by meaning; groups that took no part are left out.

        Bytes that are no UTF-8 become U+FFFD. Of two groups of one meaning the first counts.
        """
        meanings = self._compiled.meanings
        if not meanings:
            return {}
        line = self.line
        spans = self.spans()
        found: dict[str, str] = {}
        for meaning, number in meanings:
            start, end = spans[number]
            if start >= 0 and meaning not in found:
                found[meaning] = line[start:end].decode("utf-8", "replace")
        return found

    def __repr__(self) -> str:
        return f"<Match {self.rule.name} line {self.line_number} [{self.start}:{self.end}]>"
