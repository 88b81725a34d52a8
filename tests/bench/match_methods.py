"""The ways of matching that the benchmark sets side by side: each takes a chunk and counts its hits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import re2

from midwatch.rules.compiler import compile_rules
from midwatch.rules.matcher import lines_of
from midwatch.rules.model import Rule
from midwatch.rules.scanner import Clock

Method = Callable[[bytes], int]

SLOW = ("re, one rule after the other", "google-re2, one rule after the other")
OURS = "midwatch, captures on demand"
OURS_EAGER = "midwatch, all captures"
NAIVE = SLOW[0]
SET = "re2.Set, line by line"
HYPERSCAN = "hyperscan, rule ids by chunk"


def methods(rules: Sequence[Rule], clock: Clock) -> dict[str, Method]:
    """All that can run on this machine."""
    found: dict[str, Method] = {
        NAIVE: _loop([re.compile(rule.pattern.encode()).search for rule in rules]),
        SLOW[1]: _loop([re2.compile(rule.pattern.encode(), _options(rule)).search for rule in rules]),
        SET: _set(rules),
    }
    rule_set = compile_rules(rules, clock=clock)
    found[OURS] = lambda chunk: len(rule_set.match_chunk(chunk))

    def eager(chunk: bytes) -> int:
        return len([match.captures() for match in rule_set.match_chunk(chunk)])

    found[OURS_EAGER] = eager
    if find_spec("hyperscan") is not None:
        found[HYPERSCAN] = _hyperscan(rules)
    return found


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
    options.max_mem = 256 << 20
    options.encoding = re2.Options.Encoding.LATIN1
    built = re2.Set.SearchSet(options)
    for rule in rules:
        built.Add(rule.pattern.encode())
    built.Compile()
    return lambda chunk: sum(len(built.Match(line) or ()) for line in lines_of(chunk))


def _hyperscan(rules: Sequence[Rule]) -> Method:
    library = import_module("hyperscan")
    database = library.Database()
    database.compile(
        expressions=[re.sub(r"\?P<\w+>", "?:", rule.pattern).encode() for rule in rules],
        ids=list(range(len(rules))),
        elements=len(rules),
        flags=library.HS_FLAG_MULTILINE | library.HS_FLAG_ALLOWEMPTY,
    )

    def count(chunk: bytes) -> int:
        ends: set[tuple[int, int]] = set()
        database.scan(chunk, match_event_handler=lambda rule, _start, end, *_: ends.add((rule, end)))
        return len({(rule, chunk.rfind(b"\n", 0, end)) for rule, end in ends})

    return count
