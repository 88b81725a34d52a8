"""A person's questions about rules: are the files right, why does a line (not) match, how fast is it.

Everything here is pure; the command line only prints these values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midwatch.rules.bundle import read_bundle
from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.matching.block_rules import words_of
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.matching.scanner import Clock
from midwatch.rules.model import Bundle, Rule


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A rule that matches a line: the matched text, its captures, and the trigger that found the line."""

    rule: Rule
    matched: str
    captures: Mapping[str, str]
    trigger: str


@dataclass(frozen=True, slots=True)
class Miss:
    """A rule that does not match a line, although the line contains `trigger`, a literal of the rule."""

    rule: Rule
    trigger: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The hits and near misses of all rules in one line. In a near miss only a literal stands in the line."""

    hits: tuple[LineMatch, ...]
    misses: tuple[Miss, ...]


@dataclass(frozen=True, slots=True)
class CheckedFiles:
    """The result of a check: the bundle that a worker would use, or every mistake."""

    bundle: Bundle | None
    errors: tuple[LocatedError, ...]


@dataclass(frozen=True, slots=True)
class FileSpeed:
    """The speed at which the rules matched one text, and the hits by rule."""

    megabytes: float
    seconds: float
    lines: int
    hits: Mapping[str, int]

    @property
    def megabytes_per_second(self) -> float:
        """The speed of one core."""
        return self.megabytes / max(self.seconds, 1e-9)


def check_files(root: str, files: Mapping[str, bytes]) -> CheckedFiles:
    """Read a bundle and compile it as a worker would."""
    try:
        bundle = read_bundle(root, files)
        compile_rules(bundle.rules)
    except RuleErrors as errors:
        return CheckedFiles(None, errors.errors)
    return CheckedFiles(bundle, ())


def explain_line(rule_set: RuleSet, line: bytes) -> Explanation:
    """The rules that match a line, with the reason, and the near misses."""
    triggers, lowered = rule_set.triggers, line.lower()
    found = {match.rule.name: match for match in rule_set.match_line(line)}
    hits: list[LineMatch] = []
    misses: list[Miss] = []
    for entry, spellings in zip(rule_set.compiled, triggers.of_pattern, strict=True):
        rule, text = entry.rule, lowered if entry.index in triggers.folded else line
        trigger = next((spelling for spelling in spellings if spelling in text), b"").decode(
            "utf-8", "replace"
        )
        match = found.get(rule.name)
        if match is not None:
            start, end = match.spans()[0]
            hits.append(
                LineMatch(rule, line[start:end].decode("utf-8", "replace"), match.captures(), trigger)
            )
        elif trigger:
            misses.append(Miss(rule, trigger))
    return Explanation(tuple(hits), tuple(misses))


def explain_blocks(rule_set: RuleSet, text: bytes) -> Explanation:
    """The rules over blocks that match a traceback in the text, with the reason, and the near misses."""
    found = {match.rule.name: match for match in rule_set.match_blocks(text)}
    hits: list[LineMatch] = []
    misses: list[Miss] = []
    for rule in rule_set.rules:
        if not rule.block:
            continue
        words = words_of([rule.pattern])
        trigger = next((word for word in words if word and word in text), b"").decode("utf-8", "replace")
        match = found.get(rule.name)
        if match is not None:
            start, end = match.spans()[0]
            matched = match.text[start:end].decode("utf-8", "replace")
            hits.append(LineMatch(rule, matched, match.captures(), trigger))
        elif trigger:
            misses.append(Miss(rule, trigger))
    return Explanation(tuple(hits), tuple(misses))


def bench_text(rule_set: RuleSet, text: bytes, clock: Clock, chunk: int = 1 << 16) -> FileSpeed:
    """Match a text in chunks of whole lines and measure the time."""
    hits: dict[str, int] = {}
    seconds = 0.0
    start = 0
    while start < len(text):
        end = text.rfind(b"\n", start, start + chunk) + 1 or text.find(b"\n", start) + 1 or len(text)
        part = text[start:end]
        begin = clock()
        found = rule_set.match_chunk(part)
        seconds += clock() - begin
        for match in found:
            hits[match.rule.name] = hits.get(match.rule.name, 0) + 1
        start = end
    begin = clock()
    blocks = rule_set.match_blocks(text)
    seconds += clock() - begin
    for block in blocks:
        hits[block.rule.name] = hits.get(block.rule.name, 0) + 1
    lines = text.count(b"\n") + (not text.endswith(b"\n") and bool(text))
    return FileSpeed(len(text) / 1e6, seconds, lines, hits)


def differences(before: Bundle, after: Bundle) -> tuple[tuple[str, str], ...]:
    """(what, rule name) for each rule that was added, removed or changed, by name."""
    old = {rule.name: rule for rule in before.rules}
    new = {rule.name: rule for rule in after.rules}
    found: list[tuple[str, str]] = []
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            found.append(("added", name))
        elif name not in new:
            found.append(("removed", name))
        elif _content(old[name]) != _content(new[name]):
            found.append(("changed", name))
    return tuple(found)


def _content(rule: Rule) -> dict[str, object]:
    return {name: getattr(rule, name) for name in Rule.__slots__ if name != "location"}
