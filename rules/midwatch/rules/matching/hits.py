"""Hits: a rule found in a line, or in a block of lines that ends with that line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, overload

from midwatch.rules.expressions import ANCHORED, SET_MEMORY, UNANCHORED, Expression, PatternError, Span
from midwatch.rules.matching.digits import digits_are_alike
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.literals import beginnings
from midwatch.streams.errors import MidwatchError
from midwatch.streams.lines.forms import LONGEST_FORM, form_of

_REMEMBERED = 512  # forms of lines
_RUNS_ON = re.compile(r"\.[*+](?!\?|\)*$)")


_NOTHING = slice(0, 0)

_Form = tuple[Sequence[Span], Sequence[tuple[str, int, int]]]
_UNASKED: dict[bytes, _Form] = {}
"""Stands for the forms of a rule before anybody asks whether it tells digits apart. Never filled."""


class MatcherDisagreement(MidwatchError):
    """Two ways of matching gave different results: a defect of the engine, not of the rule."""

    def __init__(self, rule: Rule, text: bytes) -> None:
        super().__init__(
            f"the set and the expression of rule {rule.name!r} disagree on {text[:200]!r}",
            where=str(rule.location),
            remedy="Report the rule and the line: this is a defect of midwatch or of RE2.",
        )


class CompiledRule:
    """A rule with its expression and the meanings of its groups.

    RE2 accepts the pattern, for it is in a set. The expression is made when somebody asks for it. Most rules
    are never found, and all of them would cost each start a fifth of a second.
    """

    __slots__ = ("_beginnings", "_expression", "_forms", "_meanings", "_readers", "index", "rule")

    def __init__(self, rule: Rule, index: int) -> None:
        self.rule = rule
        self.index = index
        self._expression: Expression | None = None
        self._meanings: tuple[tuple[str, int], ...] | None = None
        self._beginnings: tuple[bytes, ...] | None = None
        # Most rules are never found, and to read their patterns would cost each start a tenth of a second.
        self._forms: dict[bytes, _Form] | None = _UNASKED
        self._readers: dict[tuple[str, ...], GroupReader] = {}

    @property
    def expression(self) -> Expression:
        """The pattern alone, compiled once."""
        if self._expression is None:
            try:
                self._expression = Expression(self.rule.pattern)
            except PatternError:
                # The set that holds it may use more memory than an expression has without being told.
                self._expression = Expression(self.rule.pattern, memory=SET_MEMORY)
        return self._expression

    @property
    def meanings(self) -> tuple[tuple[str, int], ...]:
        """The meaning and the number of each group, the last group first.

        Of two groups with one meaning the first that took part is then written last.
        """
        if self._meanings is None:
            named, numbers = self.rule.captures, self.expression.group_numbers
            self._meanings = tuple(
                (named.get(name, name), number)
                for name, number in sorted(numbers.items(), key=lambda item: -item[1])
            )
        return self._meanings

    @property
    def digits_are_alike(self) -> bool:
        """Whether the rule treats all digits alike. It then has one form of spans for each form of lines."""
        return self._known_forms() is not None

    def _known_forms(self) -> dict[bytes, _Form] | None:
        """The spans by form; None if the rule tells digits apart."""
        if self._forms is _UNASKED:
            self._forms = {} if digits_are_alike(self.rule.pattern) else None
        return self._forms

    def reader(self, meanings: tuple[str, ...]) -> GroupReader:
        """What reads only the groups of these meanings, two or more. It remembers the forms of lines."""
        known = self._readers.get(meanings)
        if known is None:
            known = self._readers[meanings] = GroupReader(self, meanings, by_form=self.digits_are_alike)
        return known

    def spans(self, text: bytes, form: bytes | None = None) -> Sequence[Span]:
        """The spans of the match and of every group, in a text in which the rule was found.

        `form` is that of the text, for a caller that knows it. Raises MatcherDisagreement if the rule does
        not match the text.
        """
        known = self._forms
        if known is _UNASKED:
            known = self._known_forms()
        if known is None or len(text) > LONGEST_FORM:
            return self._found(text)
        return self._form(text, form)[0]

    def places(self, text: bytes, form: bytes | None = None) -> Sequence[tuple[str, int, int]]:
        """The meaning and the span of each group that took part, as `spans`."""
        return self._form(text, form)[1]

    def _form(self, text: bytes, shape: bytes | None) -> _Form:
        known = self._forms
        if known is _UNASKED:
            known = self._known_forms()
        if known is None or len(text) > LONGEST_FORM:
            return self._form_of(text)
        # The lines of one form differ in their digits only, and the pattern treats all digits alike.
        shape = form_of(text) if shape is None else shape
        form = known.get(shape)
        if form is None:
            if len(known) >= _REMEMBERED:
                known.clear()
            form = known[shape] = self._form_of(text)
        return form

    def _form_of(self, text: bytes) -> _Form:
        spans = self._found(text)
        places = tuple(
            (meaning, *spans[number]) for meaning, number in self.meanings if spans[number][0] >= 0
        )
        return spans, places

    def _found(self, text: bytes) -> Sequence[Span]:
        size = len(text)
        start = size
        raw_match = (self._expression or self.expression).raw_match
        if self._beginnings is None:
            # Where `.*` may reach the end of the text, the search for a beginning costs more than it saves.
            pattern = self.rule.pattern
            self._beginnings = () if _RUNS_ON.search(pattern) else tuple(beginnings(pattern))
        for literal in self._beginnings:
            found = text.find(literal)
            if 0 <= found < start:
                start = found
        if start < size:
            # No match begins before the first of these literals, so a match that begins there is the
            # leftmost. It costs RE2 half of a search, because a search looks for the match's end and then for
            # its start.
            spans = raw_match(ANCHORED, text, start, size)
            if spans[0][0] >= 0:
                return spans
        spans = raw_match(UNANCHORED, text, 0, size)
        if spans[0][0] < 0:
            raise MatcherDisagreement(self.rule, text)
        return spans


class GroupReader:
    """Reads a few groups of a rule in texts in which the rule was found. A healthy log needs no more of them.

    A group that took no part reads as "". Otherwise the texts are those of `Match.captures`.
    """

    __slots__ = ("_by_form", "_compiled", "_meanings", "_picks")

    def __init__(self, compiled: CompiledRule, meanings: tuple[str, ...], *, by_form: bool) -> None:
        self._compiled = compiled
        self._meanings = meanings
        self._by_form = by_form
        self._picks: dict[bytes, itemgetter[Any]] = {}

    def __call__(self, texts: Sequence[bytes], forms: Iterable[bytes] | None = None) -> list[tuple[str, ...]]:
        """The texts of the groups in each text, in the order of the meanings. Raises MatcherDisagreement.

        `forms` are those of the texts, for a caller that knows them.
        """
        by_form, picks = self._by_form, self._picks
        read: list[tuple[str, ...]] = []
        for text, shape in zip(texts, map(form_of, texts) if forms is None else forms, strict=True):
            if by_form and len(text) <= LONGEST_FORM:
                pick = picks.get(shape)
                if pick is None:
                    if len(picks) >= _REMEMBERED:
                        picks.clear()
                    pick = picks[shape] = self._pick_of(text)
            else:
                pick = self._pick_of(text)
            if text.isascii():
                read.append(pick(text.decode()))
            else:
                read.append(tuple(part.decode("utf-8", "replace") for part in pick(text)))
        return read

    def _pick_of(self, text: bytes) -> itemgetter[Any]:
        places = {meaning: slice(start, end) for meaning, start, end in self._compiled.places(text)}
        return itemgetter(*(places.get(meaning, _NOTHING) for meaning in self._meanings))


class Match(NamedTuple):
    """One rule found in one line of a chunk, or in a block of lines. A block's hit is on its last line.

    `start` and `end` are the byte offsets of that line in the chunk, without its line feed. `text` is the
    text that the rule was searched in: the line, or the whole block. `form` is the form of the line, which
    many ask for. `captures` does its work on demand, because captures cost more than the match.
    """

    compiled: CompiledRule
    chunk: bytes
    start: int
    end: int
    text: bytes
    form: bytes

    @property
    def rule(self) -> Rule:
        """The rule that matched."""
        return self.compiled.rule

    @property
    def line_number(self) -> int:
        """The line's number in the chunk, from 0. Each call counts anew, which is slow in a large chunk."""
        return self.chunk.count(b"\n", 0, self.start)

    @property
    def line(self) -> bytes:
        """The line, without its line feed."""
        return self.chunk[self.start : self.end]

    def spans(self) -> Sequence[Span]:
        """The span of the match and of every group, as offsets in `text`."""
        return self.compiled.spans(self.text, self._form_of_text)

    def captures(self) -> dict[str, str]:
        """The texts of the named groups, by meaning; groups that took no part are left out.

        Bytes that are not UTF-8 become U+FFFD. Of two groups with one meaning the first that took part
        counts.
        """
        captured: dict[str, str] = {}
        compiled, text, form = self.compiled, self.text, self._form_of_text
        if not compiled.meanings:
            return captured
        if text.isascii():
            decoded = text.decode()
            for meaning, start, end in compiled.places(text, form):
                captured[meaning] = decoded[start:end]
        else:
            for meaning, start, end in compiled.places(text, form):
                captured[meaning] = text[start:end].decode("utf-8", "replace")
        return captured

    def on_line(self, start: int, end: int) -> Match:
        """The same hit, moved to another line of the chunk; a rule over lines may not match that line."""
        line = self.chunk[start:end]
        text = self.text if self.rule.block else line
        return self._replace(start=start, end=end, text=text, form=form_of(line))

    @property
    def _form_of_text(self) -> bytes | None:
        """The form of `text`; None where it is not known, because the text is a block."""
        return None if self.compiled.rule.block else self.form

    def __repr__(self) -> str:
        return f"<Match {self.rule.name} line {self.line_number} [{self.start}:{self.end}]>"


Row = tuple[CompiledRule, bytes, int, int, bytes, bytes]
"""The fields of a Match, in its order."""
_as_match: Callable[[type[Match], Row], Match] = tuple.__new__


@dataclass(frozen=True, slots=True)
class Matches(Sequence[Match]):
    """The hits of one chunk, in order. `rows` are the fields of the hits, for callers that only count them.

    A row becomes a Match on access. In a storm most hits are only counted, and the objects would cost a tenth
    of the time.
    """

    rows: Sequence[Row]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Match]:
        return map(_as_match, repeat(Match), self.rows)

    @overload
    def __getitem__(self, index: int) -> Match: ...
    @overload
    def __getitem__(self, index: slice) -> Matches: ...
    def __getitem__(self, index: int | slice) -> Match | Matches:
        if isinstance(index, slice):
            return Matches(self.rows[index])
        return _as_match(Match, self.rows[index])
