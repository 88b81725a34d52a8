"""A rule set that is ready at once finds what the fast one finds."""

from __future__ import annotations

from first_choices import first_choice
from house.cases import cases
from midwatch.rules.compiler import RuleSet, compile_rules
from midwatch.rules.loader import load_bundle
from midwatch.rules.workloads import storm


def test_without_the_scan_the_same_is_found() -> None:
    rules = load_bundle("default").rules
    text = storm(cases(200_000))

    def found(rule_set: RuleSet) -> list[tuple[str, int]]:
        return [(hit.rule.name, hit.line_number) for hit in rule_set.match_chunk(text)]

    with_scan = found(compile_rules(rules, choice=first_choice(rules)))
    assert with_scan
    assert found(compile_rules(rules, scan=False)) == with_scan
