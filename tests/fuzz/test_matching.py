"""Exactness: random rules on random bytes give what RE2's public search gives, by every path of the matcher.

FUZZ_CASES sets how many pairs of a rule and a chunk are tried (default 200,000), FUZZ_SEED where it begins.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from fuzz.differential import try_cases
from fuzz.mutants import MUTANTS, Mutant
from midwatch.rules.matching import compiler, matcher
from midwatch.rules.prefilter import literals

CASES = int(os.environ.get("FUZZ_CASES", "200000"))
SEED = int(os.environ.get("FUZZ_SEED", "20260302"))
MUTANT_CASES = 60_000


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each path of the matcher was taken."""
    taken: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        original = getattr(module, name)

        def call(*arguments: Any) -> Any:
            taken[name] += 1
            return original(*arguments)

        monkeypatch.setattr(module, name, call)

    counted(matcher, "_match_around")
    counted(matcher, "match_lines")
    original_gates = compiler._gates

    def gates(patterns: Any) -> Any:
        found, every_line = original_gates(patterns)
        taken["every line"] += every_line
        taken["gated"] += bool(found) and not every_line
        return found, every_line

    monkeypatch.setattr(compiler, "_gates", gates)
    return taken


@pytest.mark.capability("C-3")
def test_the_matcher_says_what_re2_says_line_by_line(paths: Counter[str]) -> None:
    tally = try_cases(CASES, SEED)
    print(f"{tally.cases} cases, {tally.hits} hits, {dict(tally.kinds)}, paths {dict(paths)}")
    assert tally.differences[:3] == []
    assert tally.cases >= CASES
    assert tally.hits > CASES / 20
    few = {name: count for name, count in (paths + tally.kinds).items() if count < CASES // 20_000}
    assert few == {}
    assert set(paths) == {"_match_around", "match_lines", "every line", "gated"}


@pytest.fixture
def nothing_remembered() -> Iterator[None]:
    """What was derived from a pattern before would hide a defect, and what a defect derived must not stay."""
    remembering = [one for one in vars(literals).values() if hasattr(one, "cache_clear")]
    assert remembering
    for one in remembering:
        one.cache_clear()
    yield
    for one in remembering:
        one.cache_clear()


@pytest.mark.usefixtures("nothing_remembered")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_defect_of_the_matcher_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert try_cases(MUTANT_CASES, SEED, stop_at_first=True).differences, f"{mutant.__name__} was not caught"
