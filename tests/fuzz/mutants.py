"""Defects of the matcher, by name: the fuzz must find each of them, or it proves nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from midwatch.rules import expressions
from midwatch.rules.matching import compiler, hits, known_forms, matcher, rule_finder, scanner
from midwatch.rules.matching.rule_finder import FindRules
from midwatch.rules.prefilter import literals, syntax_tree

Mutant = Callable[[pytest.MonkeyPatch], None]


def one_rule_a_line(patch: pytest.MonkeyPatch) -> None:
    """Only the first rule found in a line is told."""
    original = rule_finder.rule_finder

    def finder(patterns: Sequence[str]) -> FindRules:
        find = original(patterns)
        return lambda line: list(find(line))[:1]

    patch.setattr(compiler, "rule_finder", finder)


def line_keeps_its_end(patch: pytest.MonkeyPatch) -> None:
    """A line that the scan found is handed on with its line feed."""
    original = matcher._match_around

    def around(machinery: matcher.Machinery, text: bytes, offsets: list[int]) -> hits.Matches:
        return hits.Matches(
            [
                hit
                for hit in original(machinery, text, offsets)
                if hit.compiled.expression.search(text[hit.start : hit.end + 1]) is not None
            ]
        )

    patch.setattr(matcher, "_match_around", around)


def scan_in_the_wrong_case(patch: pytest.MonkeyPatch) -> None:
    """Lower-cased literals are looked for in the text as it is."""
    original = scanner.scanner_of
    patch.setattr(compiler, "scanner_of", lambda packed, lowered=(): original((*packed, *lowered)))


def optional_part_demanded(patch: pytest.MonkeyPatch) -> None:
    """What may be absent is taken for present."""
    original = literals._Derivation.repeated

    def repeated(self: Any, node: syntax_tree.Repeat) -> Any:
        return original(self, syntax_tree.Repeat(node.part, max(1, node.low), node.high))

    patch.setattr(literals._Derivation, "repeated", repeated)


def one_alternative_demanded(patch: pytest.MonkeyPatch) -> None:
    """Of alternatives only the first is expected."""
    patch.setattr(literals, "_either", lambda parts: parts[0])


def one_beginning_expected(patch: pytest.MonkeyPatch) -> None:
    """Of the literals with which a match may begin only one is looked for."""
    original = literals.beginnings
    patch.setattr(hits, "beginnings", lambda pattern: original(pattern)[:1])


def one_initial_expected(patch: pytest.MonkeyPatch) -> None:
    """A part that may be empty is thought to begin with one character only."""
    original = literals._Derivation.initials

    def initials(self: Any, part: syntax_tree.Tree, once: Any) -> literals.Literals | None:
        found = original(self, part, once)
        return found and frozenset((min(found),))

    patch.setattr(literals._Derivation, "initials", initials)


def one_way_demanded(patch: pytest.MonkeyPatch) -> None:
    """Of a whole pattern's alternatives only the first is looked for."""
    original = literals._ways
    patch.setattr(literals, "_ways", lambda tree: original(tree)[:1])


def case_taken_as_written(patch: pytest.MonkeyPatch) -> None:
    """`(?i)` is not heeded by the literals."""
    original = literals._Derivation.units

    def units(self: Any, node: syntax_tree.Character) -> Any:
        return original(self, syntax_tree.Character(node.points, False))

    patch.setattr(literals._Derivation, "units", units)


def kelvin_forgotten(patch: pytest.MonkeyPatch) -> None:
    """In UTF-8, (?i)k also matches the Kelvin sign: not known here."""
    original = literals._Derivation.units

    def units(self: Any, node: syntax_tree.Character) -> Any:
        if all(point < 128 for point in node.points):
            return original(literals._Derivation(bytewise=True), node)
        return original(self, node)

    patch.setattr(literals._Derivation, "units", units)


def character_taken_for_its_bytes(patch: pytest.MonkeyPatch) -> None:
    """`é?` is two bytes in the twin for ASCII lines, and only the second may be missing."""
    original = rule_finder.ascii_twin
    longer = re.compile(r"[^\x00-\x7f]")
    patch.setattr(
        rule_finder, "ascii_twin", lambda pattern: original(longer.sub(lambda part: part[0] * 2, pattern))
    )


def folding_forgotten_in_twins(patch: pytest.MonkeyPatch) -> None:
    """The twin of a Kelvin sign that `(?i)` makes a k is no k."""
    patch.setattr(rule_finder, "_FOLDS_INTO_ASCII", re.compile(r"(?!)"))


def flags_leak_out_of_groups(patch: pytest.MonkeyPatch) -> None:
    """`(?-i:..)` inside a group still holds behind it."""
    original = syntax_tree._PatternReader.group

    def group(self: Any, depth: int) -> syntax_tree.Tree:
        tree = original(self, depth)
        self.fold = False
        return tree

    patch.setattr(syntax_tree._PatternReader, "group", group)


def gates_see_across_lines(patch: pytest.MonkeyPatch) -> None:
    """The sets over whole chunks are compiled like those for one line."""
    original = expressions.compile_set

    def compile_one(patterns: Sequence[str], *, within_lines: bool = False) -> Any:
        del within_lines
        return original(patterns)

    patch.setattr(compiler, "compile_set", compile_one)


def text_ends_held_by_gates(patch: pytest.MonkeyPatch) -> None:
    r"""`\A` and `\z` are trusted to a set that sees the chunk's ends and not the lines'."""
    patch.setattr(compiler, "_is_line_bound", lambda _: True)


def unguarded_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Rules without a literal are asked only of lines that hold another's."""
    patch.setattr(compiler, "_gates", lambda _: ((), False))


def everything_is_utf8(patch: pytest.MonkeyPatch) -> None:
    """ASCII patterns no longer match through damaged bytes."""
    for module in (compiler, expressions, literals, rule_finder):
        patch.setattr(module, "is_bytewise", lambda _: False)


def quantifier_repeats_the_word(patch: pytest.MonkeyPatch) -> None:
    """`ab{2}` is read as two times `ab`: what stands before a quantifier is lost."""
    patch.setattr(syntax_tree._PatternReader, "repeated", lambda _, part: part)


def lines_counted_from_the_probe(patch: pytest.MonkeyPatch) -> None:
    """The lines of a chunk's first bytes are not counted."""
    number = property(
        lambda match: match.chunk.count(b"\n", min(match.start, matcher.PROBE + 64), match.start)
    )
    patch.setattr(hits.Match, "line_number", number)


def only_the_probe_scanned(patch: pytest.MonkeyPatch) -> None:
    """Behind the first bytes of a chunk nothing is looked for."""
    original = matcher._match_around
    patch.setattr(
        matcher,
        "_match_around",
        lambda machinery, text, offsets: original(machinery, text, [o for o in offsets if o < matcher.PROBE]),
    )


def digits_taken_for_alike(patch: pytest.MonkeyPatch) -> None:
    """A form is learnt as if no rule told one digit from another."""
    patch.setattr(hits.CompiledRule, "digits_are_alike", property(lambda _: True))


def certain_digit_kept(patch: pytest.MonkeyPatch) -> None:
    """The pattern that is looked for in a learnt form still demands the rule's own digits."""
    patch.setattr(known_forms, "with_any_digit", lambda pattern: pattern)


def no_digit_decides(patch: pytest.MonkeyPatch) -> None:
    """All lines of a form have the rules of the first that was searched, whatever its digits were."""
    patch.setattr(known_forms, "with_a_mark", lambda _: r"\x00\x00")


MUTANTS: tuple[Mutant, ...] = (
    one_rule_a_line,
    line_keeps_its_end,
    scan_in_the_wrong_case,
    optional_part_demanded,
    one_alternative_demanded,
    one_beginning_expected,
    one_initial_expected,
    one_way_demanded,
    case_taken_as_written,
    kelvin_forgotten,
    character_taken_for_its_bytes,
    folding_forgotten_in_twins,
    flags_leak_out_of_groups,
    gates_see_across_lines,
    text_ends_held_by_gates,
    unguarded_forgotten,
    everything_is_utf8,
    quantifier_repeats_the_word,
    lines_counted_from_the_probe,
    only_the_probe_scanned,
    digits_taken_for_alike,
    certain_digit_kept,
    no_digit_decides,
)
