"""Rules over whole blocks of lines: they search a traceback as one text once its last line is there.

They do not slow the rules over single lines down. A text is searched only if it has a traceback and a literal
of one of these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from midwatch.rules.expressions import compile_set, is_bytewise
from midwatch.rules.matching.hits import CompiledRule, Match
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.literals import required_literals, spelling_count, spellings
from midwatch.streams.lines.blocks import BLOCK_OPENS, finished
from midwatch.streams.lines.forms import form_of

_MOST_SPELLINGS = 16


class BlockRules:
    """Compiled rules over blocks; immutable. The constructor raises PatternError.

    `_words` is empty where a rule may match any block.
    """

    __slots__ = ("_sets", "_words", "compiled")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.compiled = tuple(CompiledRule(rule, index) for index, rule in enumerate(rules))
        kinds = (
            [entry for entry in self.compiled if is_bytewise(entry.rule.pattern) is bytewise]
            for bytewise in (True, False)
        )
        self._sets = [(compile_set([e.rule.pattern for e in kind]), kind) for kind in kinds if kind]
        words = words_of([entry.rule.pattern for entry in self.compiled])
        self._words = () if any(word in BLOCK_OPENS for word in words) else words

    def match(self, text: bytes) -> list[Match]:
        """The hits in a chunk of whole lines, by the last line of the block and then by rule."""
        if not self.compiled or BLOCK_OPENS not in text:
            return []
        if self._words and not any(word in text for word in self._words):
            return []
        hits: list[Match] = []
        for block in finished(text):
            found = [kind[index] for find, kind in self._sets for index in find(block.text)]
            if found:
                form = form_of(text[block.start : block.end])
                hits += (
                    Match(entry, text, block.start, block.end, block.text, form)
                    for entry in sorted(found, key=lambda entry: entry.index)
                )
        return hits


def words_of(patterns: Sequence[str]) -> tuple[bytes, ...]:
    """Byte strings: every text with a block that a pattern matches contains at least one of them.

    If that is unknown for a pattern, the result is the empty byte string, which every text contains.
    """
    words: set[bytes] = set()
    for pattern in patterns:
        counted = [
            (sum(map(spelling_count, demand)), -min(map(len, demand)), sorted(demand))
            for demand in required_literals(pattern)
        ]
        count, _, demand = min(counted, default=(_MOST_SPELLINGS + 1, 0, []))
        if count > _MOST_SPELLINGS:
            return (b"",)
        words.update(spelling for literal in demand for spelling in spellings(literal))
    return tuple(sorted(words))
