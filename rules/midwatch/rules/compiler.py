"""From rules to a rule set: every expression compiled and tested before anyone can use it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import orjson

from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.expressions import Expression, PatternError, compile_set, is_bytewise
from midwatch.rules.matcher import CompiledRule, Match
from midwatch.rules.model import Rule
from midwatch.rules.rule_reader import refuse_double_names
from midwatch.rules.syntax_advice import advice_for

LineSet = Callable[[bytes], Sequence[int]]


class RuleSet:
    """Compiled rules; never changed after it was made, so a reload is one assignment.

    `content_hash` is a SHA-256 (hex) over the rules themselves, independent of files.
    """

    __slots__ = ("_compiled", "_sets", "content_hash", "rules")

    def __init__(
        self, compiled: Sequence[CompiledRule], sets: Sequence[tuple[LineSet, Sequence[int]]]
    ) -> None:
        self._compiled = tuple(compiled)
        self._sets = tuple(sets)
        self.rules = tuple(entry.rule for entry in compiled)
        self.content_hash = content_hash(self.rules)

    def match_line(self, line: bytes) -> list[Match]:
        """The rules found in one line without its line feed, in the order of the rules."""
        found = sorted(members[index] for search, members in self._sets for index in search(line))
        return [Match(self._compiled[index], line, 0, 0, len(line)) for index in found]

    def match_chunk(self, text: bytes) -> list[Match]:
        r"""The hits of a chunk, by line and then by rule.

        A chunk holds whole lines that end in `\n`; the last may lack it. A chunk that ends in `\n` has no
        empty line behind it. Lines must have been normalised and capped (`midwatch.streams.lines`).
        """
        hits: list[Match] = []
        compiled = self._compiled
        start = 0
        for number, line in enumerate(_lines(text)):
            end = start + len(line)
            for index in sorted(members[index] for search, members in self._sets for index in search(line)):
                hits.append(Match(compiled[index], text, number, start, end))
            start = end + 1
        return hits


def compile_rules(rules: Iterable[Rule]) -> RuleSet:
    """A rule set, or RuleErrors with every pattern that RE2 refuses.

    Any pattern is compiled here, even one that matches every line: what a user may load is the reader's
    and the admission's business.
    """
    listed = tuple(rules)
    errors: list[LocatedError] = []
    refuse_double_names(listed, errors)
    compiled: list[CompiledRule] = []
    for rule in listed:
        try:
            compiled.append(CompiledRule(rule, Expression(rule.pattern), len(compiled)))
        except PatternError as error:
            what = f"RE2 does not accept the pattern of rule {rule.name!r}: {error}"
            errors.append(LocatedError(rule.location, what, advice_for(rule.pattern)))
    if errors:
        raise RuleErrors(errors)
    sets = []
    for bytewise in (True, False):
        members = [entry.index for entry in compiled if is_bytewise(entry.rule.pattern) is bytewise]
        if members:
            sets.append((compile_set([compiled[index].rule.pattern for index in members]), members))
    return RuleSet(compiled, sets)


def content_hash(rules: Sequence[Rule]) -> str:
    """A SHA-256 (hex) over what the rules say; where they stand in their files does not count."""
    digest = hashlib.sha256()
    for rule in rules:
        said = {name: getattr(rule, name) for name in Rule.__slots__ if name != "location"}
        digest.update(orjson.dumps(said, option=orjson.OPT_SORT_KEYS) + b"\n")
    return digest.hexdigest()


def _lines(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines
