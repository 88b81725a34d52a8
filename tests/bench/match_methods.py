"""The ways of matching that the benchmark sets side by side: each takes a chunk and counts its hits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import re2

from midwatch.rules.matching.compiler import RuleSet
from midwatch.rules.matching.matcher import lines_of
from midwatch.rules.model import Rule

Method = Callable[[bytes], int]

NAIVE = "re, one rule after the other"
NAIVE_RE2 = "google-re2, one rule after the other"
SET = "re2.Set, line by line"
OURS = "midwatch, captures on demand"
OURS_EAGER = "midwatch, all captures"
OURS_WITH_BLOCKS = "midwatch, lines, tracebacks and stops"
HYPERSCAN = "hyperscan, rule ids by chunk"
SLOW = {NAIVE, NAIVE_RE2}
EXACT = {NAIVE, NAIVE_RE2, SET, OURS, OURS_EAGER}
"""These must agree on the hits; hyperscan may match across the ends of lines."""


def methods(rules: Sequence[Rule], rule_set: RuleSet, *, readable: bool = True) -> dict[str, Method]:
    """All that can run on this machine. Loops over the rules only where `re` can read all (`readable`)."""
    found: dict[str, Method] = {}
    if readable:
        found[NAIVE] = _loop([re.compile(rule.pattern.encode()).search for rule in rules])
        found[NAIVE_RE2] = _loop(
            [re2.compile(rule.pattern.encode(), _options(rule)).search for rule in rules]
        )
    if all(rule.pattern.isascii() for rule in rules):
        found[SET] = _set(rules)
    found[OURS], found[OURS_EAGER] = on_demand(rule_set), eager(rule_set)
    if find_spec("hyperscan") is not None and readable:
        # Without the patterns that it refuses: one with an anchor amid it, say.
        found[HYPERSCAN] = _hyperscan(rules)
    return found


def on_demand(rule_set: RuleSet) -> Method:
    """Which rule is in which line."""
    return lambda chunk: len(rule_set.match_chunk(chunk))


def eager(rule_set: RuleSet) -> Method:
    """The same with all captures."""
    return lambda chunk: len([match.captures() for match in rule_set.match_chunk(chunk)])


def with_blocks(rule_set: RuleSet) -> Method:
    """All that a worker asks of a chunk: rules over lines, over whole tracebacks, and what ends a watch."""

    def count(chunk: bytes) -> int:
        asked = (rule_set.match_chunk, rule_set.match_blocks, rule_set.match_stops)
        return sum(len(ask(chunk)) for ask in asked)

    return count


def _options(rule: Rule) -> Any:
    options = re2.Options()
    options.log_errors = False
    if rule.pattern.isascii():
        options.encoding = re2.Options.Encoding.LATIN1
    return options


def _loop(searches: Sequence[Callable[[bytes], Any]]) -> Method:
    def count(chunk: bytes) -> int:
        hits = 0
        for line in lines_of(chunk):
            for search in searches:
                match = search(line)
                if match:
                    match.groups()
                    hits += 1
        return hits

    return count


def _set(rules: Sequence[Rule]) -> Method:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 256 << 20
    options.encoding = re2.Options.Encoding.LATIN1
    built = re2.Set.SearchSet(options)
    for rule in rules:
        built.Add(rule.pattern.encode())
    built.Compile()
    return lambda chunk: sum(len(built.Match(line) or ()) for line in lines_of(chunk))


def _hyperscan(rules: Sequence[Rule]) -> Method:
    library = import_module("hyperscan")
    flags = library.HS_FLAG_MULTILINE | library.HS_FLAG_ALLOWEMPTY

    def compiled(expressions: list[bytes]) -> Any:
        database = library.Database()
        ids = list(range(len(expressions)))
        database.compile(expressions=expressions, ids=ids, elements=len(ids), flags=flags)
        return database

    accepted: list[bytes] = []
    for rule in rules:
        expression = re.sub(r"\?P<\w+>", "?:", rule.pattern).encode()
        with suppress(library.error):
            compiled([expression])
            accepted.append(expression)
    database = compiled(accepted)

    def count(chunk: bytes) -> int:
        ends: set[tuple[int, int]] = set()
        database.scan(chunk, match_event_handler=lambda rule, _start, end, *_: ends.add((rule, end)))
        return len({(rule, chunk.rfind(b"\n", 0, end)) for rule, end in ends})

    return count
