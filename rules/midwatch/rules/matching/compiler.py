"""The compiler makes a rule set from rules: it compiles and tests every expression before any use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import orjson

from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.expressions import Expression, PatternError, compile_set, is_bytewise
from midwatch.rules.files.rule_reader import refuse_double_names
from midwatch.rules.files.syntax_advice import advice_for
from midwatch.rules.matching.block_rules import BlockRules
from midwatch.rules.matching.hits import CompiledRule, Match, MatcherDisagreement, Matches
from midwatch.rules.matching.known_forms import KnownForms
from midwatch.rules.matching.matcher import Machinery, lines_of, match_chunk
from midwatch.rules.matching.rule_finder import rule_finder
from midwatch.rules.matching.scanner import scanner_of
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.packing import pack
from midwatch.rules.prefilter.plan import PrefilterPlan, joined
from midwatch.rules.prefilter.syntax_tree import NotUnderstood, parse
from midwatch.rules.prefilter.triggers import Triggers, choose_triggers
from midwatch.rules.prefilter.workloads import background as usual_background
from midwatch.streams.lines.forms import form_of

_Packed = tuple[tuple[bytes, ...], ...]
BACKGROUND_LIMIT = 1 << 20
"""Most bytes of background for the selection of triggers."""
_FEW_RULES = 64
_PATIENCE = 4
"""Lines of known forms for each rule beyond these few, before the matcher learns what the forms hold."""


class RuleSet:
    """Compiled rules; immutable, so a reload is one assignment.

    `content_hash` is a SHA-256 (hex) over the rules, independent of their files. `rules` holds all rules;
    `compiled` and `triggers` belong to the rules over single lines. `plan` is None without a scan.
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
        """The same compiled rules with a scan by this plan. Takes milliseconds: RE2 compiles no rule again.

        A scan is for much text, so both sets learn the forms of lines at once from now on. Raises ValueError
        if the plan belongs to other rules.
        """
        if plan.rules != self.content_hash:
            raise ValueError(f"the prefilter plan belongs to the rules {plan.rules}, not {self.content_hash}")
        patterns = [entry.rule.pattern for entry in self.compiled]
        gates, every_line = _gates([patterns[index] for index in plan.triggers.unguarded])
        self._machinery.known_forms.learn_at_once()
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
        # A line that a rule matches is not a false candidate, so it must not count against the literals.
        without_hits = b"\n".join(line for line in text.split(b"\n") if not self._machinery.find_rules(line))
        triggers, packed, packed_lowered = _chosen(tuple(patterns), without_hits)
        return PrefilterPlan(
            rules=self.content_hash,
            triggers=triggers,
            packed=packed,
            packed_lowered=packed_lowered,
            stops=self._stops.make_plan(background) if self._stops else None,
        )

    def with_rules(self, more: Iterable[Rule]) -> RuleSet:
        """This rule set with more rules behind its own. It makes a plan for these alone, not for all.

        It finds the same as a set that was compiled at once; its scan takes a pass more. Raises RuleErrors as
        `compile_rules`.
        """
        more = tuple(more)
        together = compile_rules((*self.rules, *more), scan=False)
        if self.plan is None:
            return together
        return together.with_plan(_joined(together, self, compile_rules(more)))

    @property
    def compiled(self) -> tuple[CompiledRule, ...]:
        """The rules over single lines with their expressions."""
        return self._machinery.compiled

    @property
    def machinery(self) -> Machinery:
        """The compiled parts, for measurements and explanations."""
        return self._machinery

    def match_line(self, line: bytes) -> list[Match]:
        """The rules found in one line without its line feed, in the order of the rules."""
        found, form = sorted(self._machinery.find_rules(line)), form_of(line)
        return [Match(self.compiled[index], line, 0, len(line), line, form) for index in found]

    def match_chunk(self, text: bytes) -> Matches:
        r"""The hits of a chunk, by line and then by rule.

        A chunk holds whole lines that end in `\n`; the last may lack it. A chunk that ends in `\n` has no
        empty line behind it. The lines must be normalised (`midwatch.streams.lines.normalise`). Chunks of
        32 KiB and more are fastest; below 2 KiB most of the gain is lost.
        """
        return match_chunk(self._machinery, text)

    def match_blocks(self, text: bytes) -> list[Match]:
        """The hits of the rules over blocks, for blocks that end in a chunk, by their last lines."""
        return self._blocks.match(text)

    def match_stops(self, text: bytes) -> Matches:
        """The lines of a chunk that end the watch of a rule. The hit's rule has the name of that rule."""
        return self._stops.match_chunk(text) if self._stops is not None else Matches(())

    def reference_chunk(self, text: bytes) -> list[Match]:
        """The hits of `match_chunk`, slowly: one search for each line and rule. Audits compare the two."""
        hits: list[Match] = []
        start = 0
        for line in lines_of(text):
            end = start + len(line)
            hits.extend(
                Match(entry, text, start, end, line, form_of(line))
                for entry in self.compiled
                if entry.expression.search(line) is not None
            )
            start = end + 1
        return hits


def compile_rules(
    rules: Iterable[Rule],
    *,
    background: bytes | None = None,
    scan: bool = True,
    tested: bool = True,
    known: PrefilterPlan | None = None,
) -> RuleSet:
    """Compile rules into a rule set. Raises RuleErrors with every pattern that RE2 refuses.

    It compiles any pattern, even one that matches every line; reader and admission decide what a user may
    load. `background` is text in which the rules should not hit, best a sample of the logs to be matched. It
    affects only the speed. To plan and test the scan takes seconds of a core. Without `scan` it takes a
    twentieth of that; the set then searches every line, with the same hits. `RuleSet.with_plan` adds the scan
    later. A scan that is not `tested` on the examples is good for measurements of speed alone. `known` is a
    finished plan. It is used where it belongs to these rules, and else one is made.
    """
    everything = tuple(rules)
    errors: list[LocatedError] = []
    refuse_double_names(everything, errors)
    over_lines = [rule for rule in everything if not rule.block]
    compiled = [CompiledRule(rule, index) for index, rule in enumerate(over_lines)]
    try:
        find_rules = rule_finder([rule.pattern for rule in over_lines])
        blocks = BlockRules(rule for rule in everything if rule.block)
    except PatternError:
        refused = _refused(everything)
        if not refused:
            raise
        raise RuleErrors([*errors, *refused]) from None
    if errors:
        raise RuleErrors(errors)
    stop_rules = [Rule(name=rule.name, pattern=rule.stop_pattern) for rule in everything if rule.stop_pattern]
    of_stops = None if known is None else known.stops
    stops = None
    if stop_rules:
        stops = compile_rules(stop_rules, background=background, scan=scan, known=of_stops)
    patience = _PATIENCE * max(0, len(compiled) - _FEW_RULES)
    known_forms = KnownForms(compiled, find_rules, rule_finder, patience=patience)
    machinery = Machinery(tuple(compiled), find_rules, known_forms, scanner_of(()), (), every_line=True)
    rule_set = RuleSet(machinery, blocks, everything, stops)
    if scan:
        fits = known is not None and known.rules == rule_set.content_hash
        rule_set = rule_set.with_plan(known if known and fits else rule_set.make_plan(background))
        if tested:
            _self_test(rule_set)
    return rule_set


def _refused(rules: Iterable[Rule]) -> list[LocatedError]:
    """A mistake for each rule whose pattern RE2 refuses. A set does not say which pattern it refuses."""
    errors: list[LocatedError] = []
    for rule in rules:
        try:
            Expression(rule.pattern)
        except PatternError as error:
            what = f"RE2 does not accept the pattern of rule {rule.name!r}: {error}"
            errors.append(LocatedError(rule.location, what, advice_for(rule.pattern)))
    return errors


def _joined(together: RuleSet, first: RuleSet, behind: RuleSet) -> PrefilterPlan:
    """The plan of two sets for the set of the rules of both."""
    if first.plan is None or behind.plan is None:
        raise AssertionError("rules that are compiled with a scan have a plan")
    plan = joined(first.plan, behind.plan, together.content_hash)
    stops, of_both = together._stops, [each._stops for each in (first, behind) if each._stops]
    if stops is None:
        return plan
    return replace(plan, stops=of_both[0].plan if len(of_both) == 1 else _joined(stops, *of_both))


def _no_triggers(count: int) -> Triggers:
    return Triggers((), (), frozenset(), tuple(range(count)), ((),) * count, 0.0)


@lru_cache(maxsize=4)
def _chosen(patterns: tuple[str, ...], text: bytes) -> tuple[Triggers, _Packed, _Packed]:
    """The triggers and both their packings. Admission and what follows it ask for the same patterns again."""
    triggers = choose_triggers(patterns, text)
    return triggers, _packed(triggers.spellings, text), _packed(triggers.lowered, text.lower())


def _packed(literals: Sequence[bytes], sample: bytes) -> _Packed:
    return tuple(map(tuple, pack(literals, sample)))


def content_hash(rules: Sequence[Rule]) -> str:
    """A SHA-256 (hex) over the fields of the rules, without their places in files.

    `export` is younger than the first hashes, so it takes part only where a rule has it.
    """
    digest = hashlib.sha256()
    for rule in rules:
        left_out = ("location",) if rule.export else ("location", "export")
        fields = {name: getattr(rule, name) for name in Rule.__slots__ if name not in left_out}
        digest.update(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS) + b"\n")
    return digest.hexdigest()


def _gates(patterns: Sequence[str]) -> tuple[tuple[Callable[[bytes], Sequence[int]], ...], bool]:
    """Sets that search a whole text for patterns without triggers; True if a pattern fits no such set."""
    line_bound = [pattern for pattern in patterns if _is_line_bound(pattern)]
    kinds = [[p for p in line_bound if is_bytewise(p) is bytewise] for bytewise in (True, False)]
    gates = tuple(compile_set(kind, within_lines=True) for kind in kinds if kind)
    return gates, len(line_bound) < len(patterns)


def _is_line_bound(pattern: str) -> bool:
    try:
        return parse(pattern).line_bound
    except NotUnderstood:
        return False


def _self_test(rule_set: RuleSet) -> None:
    """Raise MatcherDisagreement if the scan would pass over an example that its rule alone matches."""
    triggers, find = rule_set.triggers, rule_set.machinery.find_triggers
    for entry, spellings in zip(rule_set.compiled, triggers.of_pattern, strict=True):
        for example in (*entry.rule.match, *entry.rule.no_match):
            line = example.encode("utf-8", "surrogateescape")
            if not spellings or b"\n" in line or entry.expression.search(line) is None:
                continue
            text = line.lower() if entry.index in triggers.folded else line
            if not (any(spelling in text for spelling in spellings) and find(line)):
                raise MatcherDisagreement(entry.rule, line)
