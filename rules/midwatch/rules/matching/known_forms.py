"""The rules in lines of which many differ in their digits only: a form that comes often is searched no more.

Most rules treat all digits alike, so all lines of a form have the same of them. A rule that does not is
asked only where the same pattern with any digit is found in the form. Where few digits can decide on it, it
is asked once for each value of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from midwatch.rules.matching.digits import MARK, with_a_mark, with_any_digit
from midwatch.rules.matching.hits import CompiledRule
from midwatch.rules.matching.rule_finder import FindRules
from midwatch.streams.lines.forms import LONGEST_FORM, form_of

OFTEN = 16
"""Lines of a form that are searched before the form is learnt."""
_REMEMBERED = 4096
_MOST_ASKED = 32
_FINDERS = 64
_SAMPLE = 64
_MOST_DECIDING = 12  # digits of a line
_MOST_DECIDED = 256  # of their values


@dataclass(slots=True)
class _Form:
    """The rules in all lines of a form, in order, and what finds those that are in some of them.

    `others` has the indexes of what `find` finds. `find` is None where all lines of the form have the same.
    `deciding` gives the digits of a line on which alone its rules depend, and `decided` what is known by
    them. `deciding` is None where these digits are many, or are not known.
    """

    alike: list[int]
    others: tuple[int, ...]
    find: FindRules | None
    deciding: Callable[[bytes], object] | None
    decided: dict[object, list[int]]

    def rules_in(self, line: bytes) -> list[int]:
        """The indexes of the rules in a line of this form, in order."""
        more = self.find(line) if self.find is not None else ()
        return sorted([*self.alike, *(self.others[index] for index in more)]) if more else self.alike

    def decide(self, line: bytes, digits: object) -> list[int]:
        """The same, for the next line with these digits as well."""
        if len(self.decided) >= _MOST_DECIDED:
            self.deciding = None
        found = self.decided[digits] = self.rules_in(line)
        return found


class KnownForms:
    """What `find_rules` finds, faster for lines of a form that came before.

    `finder_of` makes a function like `find_rules` for other patterns. That costs milliseconds, so only a form
    that came `OFTEN` times is worth it. The first form of all costs most. So nothing is learnt before
    `patience` lines had such a form: a short log ends before that pays.
    """

    def __init__(
        self,
        compiled: Sequence[CompiledRule],
        find_rules: FindRules,
        finder_of: Callable[[Sequence[str]], FindRules],
        *,
        patience: int = 0,
    ) -> None:
        self._compiled = compiled
        self._find_rules = find_rules
        self._finder_of = finder_of
        self._patience = patience
        self._find_wider: FindRules | None = None
        self._wider: list[int] = []
        self._always: list[int] = []
        self._finders: dict[tuple[int, ...], tuple[FindRules, FindRules | None]] = {}
        self._seen: dict[bytes, int] = {}
        self._known: dict[bytes, _Form | None] = {}

    def learn_at_once(self) -> None:
        """Learn each form as soon as it came often, because much text is to be searched."""
        self._patience = 0

    def find_in(self, lines: Sequence[bytes], forms: Iterable[bytes] | None = None) -> Iterator[list[int]]:
        """The indexes of the rules found in each line, in order. Nobody may change the lists.

        `forms` are those of the lines, for a caller that knows them.
        """
        known, find_rules = self._known.get, self._find_rules
        for line, shape in zip(lines, map(form_of, lines) if forms is None else forms, strict=True):
            form = known(shape) or self._met(shape, line)
            if form is None:
                yield sorted(find_rules(line))
            elif form.find is None:
                yield form.alike
            elif form.deciding is None:
                yield form.rules_in(line)
            else:
                digits = form.deciding(line)
                found = form.decided.get(digits)
                yield form.decide(line, digits) if found is None else found

    def _met(self, shape: bytes, line: bytes) -> _Form | None:
        """What is known of a form once it came often; None if this line is to be searched."""
        if len(line) > LONGEST_FORM or shape in self._known:
            return None
        times = self._seen.get(shape, 0) + 1
        if times < OFTEN:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[shape] = times
            return None
        if self._patience > 0:
            self._patience -= 1
            return None
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._seen.pop(shape, None)
        form = self._known[shape] = self._learnt(shape, line)
        return form

    def _learnt(self, shape: bytes, line: bytes) -> _Form | None:
        """What is true of all lines of this form; None if each of them is to be searched."""
        if self._find_wider is None:
            self._find_wider = self._make_wider()
        may_tell = [*self._always, *(self._wider[index] for index in self._find_wider(line))]
        if len(may_tell) > _MOST_ASKED:
            return None
        alike = sorted(i for i in self._find_rules(line) if self._compiled[i].digits_are_alike)
        if not may_tell:
            return _Form(alike, (), None, None, {})
        others = tuple(sorted(may_tell))
        find, find_marked = self._finders_for(others)
        return _Form(alike, others, find, find_marked and _deciding(shape, find_marked), {})

    def _finders_for(self, indexes: tuple[int, ...]) -> tuple[FindRules, FindRules | None]:
        """What finds these rules, and what finds where a digit decides on them, if that is known."""
        known = self._finders.get(indexes)
        if known is None:
            if len(self._finders) >= _FINDERS:
                self._finders.clear()
            patterns = [self._compiled[index].rule.pattern for index in indexes]
            marked = [each for each in map(with_a_mark, patterns) if each is not None]
            find_marked = self._finder_of(marked) if len(marked) == len(patterns) else None
            known = self._finders[indexes] = self._finder_of(patterns), find_marked
        return known

    def _make_wider(self) -> FindRules:
        patterns: list[str] = []
        for entry in self._compiled:
            if entry.digits_are_alike:
                continue
            wider = with_any_digit(entry.rule.pattern)
            if wider is None:
                self._always.append(entry.index)
            else:
                self._wider.append(entry.index)
                patterns.append(wider)
        return self._finder_of(patterns)


def _deciding(shape: bytes, find_marked: FindRules) -> Callable[[bytes], object] | None:
    """What takes the digits from a line of a form on which its rules depend; None where they are too many."""
    if MARK in shape:
        return None
    places = [
        at
        for at in range(len(shape))
        if shape[at : at + 1] == b"0" and find_marked(shape[:at] + MARK + shape[at + 1 :])
    ]
    if len(places) > _MOST_DECIDING:
        return None
    return itemgetter(*places) if places else lambda _: None


def are_alike(lines: Sequence[bytes]) -> bool:
    """Whether at most half as many forms as lines are among the first lines."""
    sample = lines[:_SAMPLE]
    return 2 * len(set(map(form_of, sample))) <= len(sample)
