"""From rules to a rule set: every expression compiled and tested before anyone can use it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import orjson

from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.expressions import Expression, PatternError, compile_set, is_bytewise
from midwatch.rules.files.rule_reader import refuse_double_names
from midwatch.rules.files.syntax_advice import advice_for
from midwatch.rules.matching.block_rules import BlockRules
from midwatch.rules.matching.hits import CompiledRule, Match, MatcherDisagreement, Matches
from midwatch.rules.matching.matcher import SMALL_CHUNK, FindRules, Machinery, lines_of, match_chunk
from midwatch.rules.matching.scanner import scanner_of
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.literals import required_literals, spelling_count, spellings
from midwatch.rules.prefilter.packing import pack
from midwatch.rules.prefilter.plan import PrefilterPlan
from midwatch.rules.prefilter.syntax_tree import NotUnderstood, parse
from midwatch.rules.prefilter.triggers import Triggers, choose_triggers
from midwatch.rules.prefilter.workloads import background as usual_background

_MOST_WORDS = 16
BACKGROUND_LIMIT = 1 << 20
"""Bytes of background that the choice of triggers looks at."""


class RuleSet:
    """Compiled rules; never changed after it was made, so a reload is one assignment.

    `content_hash` is a SHA-256 (hex) over the rules themselves, independent of files. `rules` are all;
    `compiled` and `triggers` are of those over single lines. `plan` is None without a scan.
    """

    __slots__ = ("_blocks", "_machinery", "_stops", "content_hash", "plan", "rules", "triggers")

    def __init__(
        self,
        machinery: Machinery,
        blocks: BlockRules,
        rules: tuple[Rule, ...],
        stops: RuleSet | None = None,
        plan: PrefilterPlan | None = None,
    ) -> None:
        self._machinery = machinery
        self._blocks = blocks
        self._stops = stops
        self.plan = plan
        self.triggers = plan.triggers if plan else _no_triggers(len(machinery.compiled))
        self.rules = rules
        self.content_hash = content_hash(rules)

    def with_plan(self, plan: PrefilterPlan) -> RuleSet:
        """The same compiled rules behind a scan by this plan, in milliseconds: RE2 compiles no rule again.

        Raises ValueError if the plan was made for other rules.
        """
        if plan.rules != self.content_hash:
            raise ValueError(f"a prefilter plan for the rules {plan.rules}, not {self.content_hash}")
        patterns = [entry.rule.pattern for entry in self.compiled]
        gates, every_line = _gates([patterns[index] for index in plan.triggers.unguarded])
        machinery = replace(
            self._machinery,
            find_triggers=scanner_of(plan.packed, plan.packed_lowered),
            gates=gates,
            every_line=every_line,
        )
        stops = self._stops.with_plan(plan.stops) if self._stops and plan.stops else self._stops
        return RuleSet(machinery, self._blocks, self.rules, stops, plan)

    def make_plan(self, background: bytes | None = None) -> PrefilterPlan:
        """The prefilter plan for these rules; see `compile_rules` for `background`. Takes seconds."""
        patterns = [entry.rule.pattern for entry in self.compiled]
        text = usual_background() if background is None else background[:BACKGROUND_LIMIT]
        # A line that a rule matches is no false candidate, so it must not count against the rule's literals.
        without_hits = b"\n".join(line for line in text.split(b"\n") if not self._machinery.find_rules(line))
        triggers = choose_triggers(patterns, without_hits)
        return PrefilterPlan(
            rules=self.content_hash,
            triggers=triggers,
            packed=_packed(triggers.spellings, without_hits),
            packed_lowered=_packed(triggers.lowered, without_hits.lower()),
            stops=self._stops.make_plan(background) if self._stops else None,
        )

    @property
    def compiled(self) -> tuple[CompiledRule, ...]:
        """The rules over single lines with their expressions."""
        return self._machinery.compiled

    @property
    def machinery(self) -> Machinery:
        """The compiled parts, for those who measure or explain them."""
        return self._machinery

    def match_line(self, line: bytes) -> list[Match]:
        """The rules found in one line without its line feed, in the order of the rules."""
        found = sorted(self._machinery.find_rules(line))
        return [Match(self.compiled[index], line, 0, len(line), line) for index in found]

    def match_chunk(self, text: bytes) -> Matches:
        r"""The hits of a chunk, by line and then by rule.

        A chunk holds whole lines that end in `\n`; the last may lack it. A chunk that ends in `\n` has no
        empty line behind it. Lines must have been normalised (`midwatch.streams.lines.normalise`). Chunks of
        32 KiB and more are fastest; below 2 KiB most of the gain is lost.
        """
        return match_chunk(self._machinery, text)

    def match_blocks(self, text: bytes) -> list[Match]:
        """The hits of the rules over blocks that end in a chunk, by the blocks' last lines."""
        return self._blocks.match(text)

    def match_stops(self, text: bytes) -> Matches:
        """The lines of a chunk that end the watch of a rule: the one whose name the hit's rule bears."""
        return self._stops.match_chunk(text) if self._stops is not None else Matches(())

    def reference_chunk(self, text: bytes) -> list[Match]:
        """The same, slowly: each line searched for each rule alone. What `match_chunk` is audited against."""
        hits: list[Match] = []
        start = 0
        for line in lines_of(text):
            end = start + len(line)
            hits.extend(
                Match(entry, text, start, end, line)
                for entry in self.compiled
                if entry.expression.search(line) is not None
            )
            start = end + 1
        return hits


def compile_rules(rules: Iterable[Rule], *, background: bytes | None = None, scan: bool = True) -> RuleSet:
    """A rule set, or RuleErrors with every pattern that RE2 refuses.

    Any pattern is compiled here, even one that matches every line: what a user may load is the reader's
    and the admission's business. `background` is text in which the rules should not hit, best a sample of
    what is about to be matched; it changes the speed and nothing else. To plan the scan and to test it takes
    seconds of a core. Without `scan` it takes a twentieth of that: every line is then asked of the set, which
    finds the same. `RuleSet.with_plan` adds the scan later.
    """
    everything = tuple(rules)
    errors: list[LocatedError] = []
    refuse_double_names(everything, errors)
    compiled: list[CompiledRule] = []
    for rule in everything:
        try:
            entry = CompiledRule(rule, Expression(rule.pattern), len(compiled))
            compiled += () if rule.block else (entry,)
        except PatternError as error:
            what = f"RE2 does not accept the pattern of rule {rule.name!r}: {error}"
            errors.append(LocatedError(rule.location, what, advice_for(rule.pattern)))
    if errors:
        raise RuleErrors(errors)
    enders = [Rule(name=rule.name, pattern=rule.stop_pattern) for rule in everything if rule.stop_pattern]
    stops = compile_rules(enders, background=background, scan=scan) if enders else None
    find_rules = _rule_finder([entry.rule.pattern for entry in compiled])
    machinery = Machinery(tuple(compiled), find_rules, scanner_of(()), (), every_line=True)
    blocks = BlockRules(rule for rule in everything if rule.block)
    rule_set = RuleSet(machinery, blocks, everything, stops)
    if scan:
        rule_set = rule_set.with_plan(rule_set.make_plan(background))
        _self_test(rule_set)
    return rule_set


def _no_triggers(count: int) -> Triggers:
    return Triggers((), (), frozenset(), tuple(range(count)), ((),) * count, 0.0)


def _packed(literals: Sequence[bytes], sample: bytes) -> tuple[tuple[bytes, ...], ...]:
    return tuple(map(tuple, pack(literals, sample)))


def content_hash(rules: Sequence[Rule]) -> str:
    """A SHA-256 (hex) over what the rules say; where they stand in their files does not count."""
    digest = hashlib.sha256()
    for rule in rules:
        said = {name: getattr(rule, name) for name in Rule.__slots__ if name != "location"}
        digest.update(orjson.dumps(said, option=orjson.OPT_SORT_KEYS) + b"\n")
    return digest.hexdigest()


def _rule_finder(patterns: Sequence[str]) -> FindRules:
    """A function from a line to the indexes of the patterns found in it, in no order."""
    members = {
        bytewise: [i for i, pattern in enumerate(patterns) if is_bytewise(pattern) is bytewise]
        for bytewise in (True, False)
    }
    sets = {
        bytewise: compile_set([patterns[index] for index in indexes])
        for bytewise, indexes in members.items()
        if indexes
    }
    if not sets:
        return lambda _: []
    if len(sets) == 1:
        return next(iter(sets.values()))
    in_bytes, in_utf8 = sets[True], sets[False]
    byte_indexes, utf8_indexes = members[True], members[False]
    words = _words_of([patterns[index] for index in utf8_indexes])

    def find_in_both(line: bytes) -> list[int]:
        found = in_bytes(line)
        if found:
            found = [byte_indexes[index] for index in found]
        for word in words:
            if word in line:
                return [*found, *(utf8_indexes[index] for index in in_utf8(line))]
        return found

    return find_in_both


def _words_of(patterns: Sequence[str]) -> list[bytes]:
    """Byte strings of which a line holds one if any of the patterns match it; the empty one where unknown.

    Few rules are not ASCII, and asking their set about each line would double the cost of all others.
    """
    words: set[bytes] = set()
    for pattern in patterns:
        # Of two demands the one with fewer spellings, and of these the one with longer literals.
        counted = [
            (sum(map(spelling_count, demand)), -min(map(len, demand)), sorted(demand))
            for demand in required_literals(pattern)
        ]
        count, _, demand = min(counted, default=(_MOST_WORDS + 1, 0, []))
        if len(words) + count > _MOST_WORDS:
            return [b""]
        words.update(spelling for literal in demand for spelling in spellings(literal))
    return sorted(words)


def _gates(patterns: Sequence[str]) -> tuple[tuple[Callable[[bytes], Sequence[int]], ...], bool]:
    """Sets over a whole text for patterns without triggers, and whether one of them cannot be held by any."""
    held = [pattern for pattern in patterns if _is_line_bound(pattern)]
    kinds = [[p for p in held if is_bytewise(p) is bytewise] for bytewise in (True, False)]
    gates = tuple(compile_set(kind, within_lines=True) for kind in kinds if kind)
    return gates, len(held) < len(patterns)


def _is_line_bound(pattern: str) -> bool:
    try:
        return parse(pattern).line_bound
    except NotUnderstood:
        return False


def _self_test(rule_set: RuleSet) -> None:
    """Matched as the stream is, every example of a rule must give what the rule alone says of it."""
    examples = [
        (entry, line.encode("utf-8", "surrogateescape"))
        for entry in rule_set.compiled
        for line in (*entry.rule.match, *entry.rule.no_match)
    ]
    # A long line without a literal comes first, so that the chunk is scanned and not asked line by line.
    text = b"\n".join((b"." * (2 * SMALL_CHUNK), *(line for _, line in examples)))
    found = {(hit.start, hit.compiled.index) for hit in rule_set.match_chunk(text)}
    start = 2 * SMALL_CHUNK + 1
    for entry, line in examples:
        alone = b"\n" not in line and entry.expression.search(line) is not None
        if alone and (start, entry.index) not in found:
            raise MatcherDisagreement(entry.rule, line)
        start += len(line) + 1
