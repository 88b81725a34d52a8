"""One run of the differential fuzz: the engine as the worker uses it against RE2's public search."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2

from fuzz.patterns import (
    Piece,
    either,
    in_any_case,
    line,
    loosely_joined,
    other_digits,
    rule_pattern,
    without_literals,
)
from midwatch.rules.matching import known_forms
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.matching.hits import MatcherDisagreement
from midwatch.rules.model import Rule
from midwatch.streams.lines.normalise import normalise

Hit = tuple[int, int, int, str, tuple[tuple[int, int], ...], tuple[tuple[str, str], ...]]
"""Line number, start and end of the line, rule, the span of every group, the captures of the named ones."""
_Found = tuple[str, tuple[tuple[int, int], ...], tuple[tuple[str, str], ...]]
"""The last three of these: what RE2 says of a line wherever it stands."""

_RULES = 16
_CHUNKS = 40
_FILLER = b"." * 2100
_COMMON = ("noise", "12 tail", "quiet", "usual", "plain", "level", "other", "moved", "again", "below")
_BACKGROUND = (" ".join(_COMMON) + "\n").encode() * 40
_DIGITS = [b"%d" % digit for digit in range(10)]
_KINDS = (*("scanned",) * 5, *("scanned behind",) * 2, *("small",) * 2, "raw", "raw", "crowded")


@dataclass(slots=True)
class Tally:
    """What was tried, and the first differences found."""

    cases: int = 0
    hits: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """RE2's own compilation of a pattern, which is tried before it becomes a rule. Raises re2.error."""
    options = re2.Options()
    options.log_errors = False
    if pattern.isascii():
        options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern.encode(), options)


class Reference:
    """google-re2's public `search`, one rule and one line at a time; nothing of midwatch is in it.

    Many chunks repeat a line. What RE2 says of equal bytes is kept.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self.compiled = [_compiled(pattern) for pattern in patterns]
        self._of_line: dict[bytes, list[_Found]] = {}

    def hits(self, text: bytes) -> list[Hit]:
        """The hits of a text whose lines end in a line feed each, the last perhaps without."""
        found: list[Hit] = []
        start = 0
        for number, content in enumerate((text[:-1] if text.endswith(b"\n") else text).split(b"\n")):
            if not text:
                break
            if content not in self._of_line:
                self._of_line[content] = list(self._search(content))
            place = (number, start, start + len(content))
            found += [(*place, *rule) for rule in self._of_line[content]]
            start += len(content) + 1
        return found

    def _search(self, content: bytes) -> Iterator[_Found]:
        for index, expression in enumerate(self.compiled):
            match = expression.search(content)
            if match is None:
                continue
            spans = tuple(match.span(group) for group in range(expression.groups + 1))
            captured = {
                name.decode(): value.decode("utf-8", "replace")
                for name, value in match.groupdict().items()
                if value is not None
            }
            yield f"r{index}", spans, tuple(sorted(captured.items()))


def engine_hits(rule_set: RuleSet, text: bytes, first_line: int = 0, offset: int = 0) -> list[Hit]:
    """What the worker sees of a chunk, in the reference's form."""
    return [
        (
            match.line_number + first_line,
            match.start + offset,
            match.end + offset,
            match.rule.name,
            tuple(match.spans()),
            tuple(sorted(match.captures().items())),
        )
        for match in rule_set.match_chunk(text)
    ]


def try_cases(cases: int, seed: int, stop_at_first: bool = False) -> Tally:
    """Try at least `cases` pairs of a rule and a chunk."""
    rng = random.Random(seed)
    tally = Tally()
    before: RuleSet | None = None
    while tally.cases < cases and not (stop_at_first and tally.differences):
        pieces = _rules(rng)
        patterns = [piece.text for piece in pieces]
        background = rng.choice((b"", _BACKGROUND, _BACKGROUND))
        try:
            rule_set = compile_rules(
                (Rule(name=f"r{i}", pattern=p) for i, p in enumerate(patterns)), background=background
            )
        except Exception as error:  # whatever the engine raises on a valid pattern is a finding
            tally.differences.append(f"{patterns}: {error!r}")
            continue
        reference = Reference(patterns)
        for _ in range(_CHUNKS):
            _try_chunk(rng, rule_set, reference, pieces, tally)
        _try_stream(rng, rule_set, reference, pieces, tally)
        _try_forms(rng, rule_set, reference, pieces, tally)
        if before is not None:
            # Hot reload: what an older set answers does not change when a newer one is in force.
            text = _text(rng, pieces)
            old = before.match_chunk(text)
            rule_set.match_chunk(text)
            if before.match_chunk(text) != old:
                tally.differences.append(f"an older rule set changed its answer on {text!r}")
            tally.kinds["reload"] += 1
        before = rule_set
    return tally


def _rules(rng: random.Random) -> list[Piece]:
    """Rules that RE2 accepts, in sets of several kinds: each path of the matcher is the usual one of some.

    All with a literal; all with one in any case; most with one, the others with the ends of lines or of
    the text, or with a common word before what may be absent; and anything at all.
    """
    kind = rng.choice(("guarded", "loose", "folded", "gated", "gated", "ends", "any"))
    pieces: list[Piece] = []
    while len(pieces) < _RULES:
        piece = rule_pattern(rng)
        if kind == "gated" and len(pieces) < 2:
            piece = without_literals(rng, ("^", "$"))
        elif kind == "loose" and len(pieces) < len(_COMMON):
            piece = loosely_joined(rng, _COMMON[len(pieces)])
        elif kind == "ends" and len(pieces) < 2:
            piece = without_literals(rng, rng.choice((("\\A", "$"), ("^", "\\z"), ("(?-m:^)", ""))))
        elif kind != "any":
            piece = _guarded(rng, piece, folded=kind == "folded")
            if rng.random() < 0.2:
                piece = either(piece, _guarded(rng, rule_pattern(rng), folded=kind == "folded"))
        if kind == "folded":
            piece = in_any_case(piece)
            if rng.random() < 0.5:
                piece = Piece(f"{piece.text}é?", piece.sample)
        try:
            Reference([piece.text])
        except re2.error:
            continue
        pieces.append(piece)
    return pieces


_GUARDS = ("rank ", "NCCL", "died", "abab", "Kill", "exit", "Fatal", "stuck")


def _guarded(rng: random.Random, piece: Piece, *, folded: bool) -> Piece:
    words = rng.sample(_GUARDS, rng.choice((1, 1, 2)))
    guard = f"(?:{'|'.join(words)})"
    if rng.random() < 0.5:
        held = guard if folded else f"(?-i:{guard})"
        return Piece(f"(?:{piece.text}){held}", lambda r: piece.sample(r) + r.choice(words).encode())
    return Piece(f"{guard}(?:{piece.text})", lambda r: r.choice(words).encode() + piece.sample(r))


def _text(rng: random.Random, pieces: list[Piece]) -> bytes:
    text = b"\n".join(line(rng, pieces) for _ in range(rng.choice((1, 2, 3, 6))))
    return text + rng.choice((b"", b"\n", b"\n\n"))


def _try_chunk(
    rng: random.Random, rule_set: RuleSet, reference: Reference, pieces: list[Piece], tally: Tally
) -> None:
    text = _text(rng, pieces)
    kind = rng.choice(_KINDS)
    if kind == "scanned":
        text = _FILLER + b"\n" + text
    elif kind == "scanned behind":
        text = text.rstrip(b"\n") + b"\n" + _FILLER
    elif kind == "crowded":
        text = b"\n".join([text] * (2100 // max(1, len(text)) + 1))[:2400]
    elif kind == "raw":
        text = normalise(text.replace(b"a", b"a\r") + b"\n").text
    tally.kinds[kind] += 1
    _compare(engine_hits(rule_set, text), reference.hits(text), text, rule_set, tally)


def _try_stream(
    rng: random.Random, rule_set: RuleSet, reference: Reference, pieces: list[Piece], tally: Tally
) -> None:
    """The same lines cut into chunks anywhere must give the same hits."""
    lines = [line(rng, pieces) + b"\n" for _ in range(12)]
    lines.insert(rng.randrange(12), _FILLER + b"\n")
    found: list[Hit] = []
    first = offset = 0
    while first < len(lines):
        count = rng.choice((1, 2, 7, 13))
        chunk = b"".join(lines[first : first + count])
        found.extend(engine_hits(rule_set, chunk, first, offset))
        offset += len(chunk)
        first += count
    text = b"".join(lines)
    tally.kinds["cut anywhere"] += 1
    _compare(found, reference.hits(text), text, rule_set, tally)


def _try_forms(
    rng: random.Random, rule_set: RuleSet, reference: Reference, pieces: list[Piece], tally: Tally
) -> None:
    """Lines of a few forms, which the matcher learns after some time: later ones have other digits."""
    lines = [line(rng, pieces) for _ in range(12)]
    forms = sorted(lines, key=lambda each: sum(map(each.count, _DIGITS)))[-3:]
    lines = [other_digits(rng, form) for _ in range(known_forms.OFTEN + 12) for form in forms]
    text = b"\n".join(lines)
    tally.kinds["often"] += 1
    try:
        found = engine_hits(rule_set, text)
    except MatcherDisagreement as error:
        tally.differences.append(str(error))
        return
    _compare(found, reference.hits(text), text, rule_set, tally)


def _compare(found: list[Hit], wanted: list[Hit], text: bytes, rule_set: RuleSet, tally: Tally) -> None:
    tally.cases += len(rule_set.rules)
    tally.hits += len(wanted)
    if found != wanted:
        odd = sorted(set(found) ^ set(wanted))[:2]
        names = {hit[3] for hit in odd}
        patterns = [rule.pattern for rule in rule_set.rules if rule.name in names]
        tally.differences.append(f"{patterns} on {text[:300]!r}: {odd or 'the order'}")
