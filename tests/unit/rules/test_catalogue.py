"""The page of rules tells what the rules are."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.rules.catalogue import page
from midwatch.rules.errors import RuleErrors
from midwatch.rules.loader import load_bundle, shipped_files

PAGE = Path(__file__).parents[3] / "docs" / "catalogue.md"


def test_the_page_in_the_repository_is_the_present_one() -> None:
    assert PAGE.read_text() == page(shipped_files()), "python -m midwatch.rules.catalogue > docs/catalogue.md"


def test_every_rule_that_is_looked_for_by_default_stands_on_it_with_its_remedy() -> None:
    text = page(shipped_files())
    for rule in load_bundle("default").rules:
        assert f"### {rule.name}\n" in text
        assert rule.remedy in text


def test_a_rule_that_the_page_would_lack_is_named() -> None:
    files = dict(shipped_files())
    files["toy.yaml"] = (
        b"version: 1\nrules:\n  - {name: toy_lost, pattern: lost, source: toy, match: [found, lost]}\n"
    )
    with pytest.raises(RuleErrors, match="toy_lost"):
        page(files)
