"""The page of the rule format says what the reader takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from midwatch.rules.files import format_page
from midwatch.rules.files.file_schema import rule_file_schema
from midwatch.rules.files.format_page import schema_of
from midwatch.rules.files.rule_reader import read_rules

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def page() -> str:
    return format_page.page()


def test_the_page_in_the_repository_is_the_present_one(page: str) -> None:
    wanted = "python -m midwatch.rules.files.format_page > docs/rule-format.md"
    assert (ROOT / "docs/rule-format.md").read_text() == page, wanted


def test_every_field_stands_there_with_its_meaning(page: str) -> None:
    rule, text = schema_of(rule_file_schema(), "rules")["items"], page
    for schema in (rule_file_schema(), rule):
        properties = schema["properties"]
        assert isinstance(properties, dict)
        for name, field in properties.items():
            assert field.get("description"), name
            assert f"| `{name}` |" in text


def test_its_example_is_a_rule_file(page: str) -> None:
    example = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (rule,) = read_rules({"example.yaml": example[0].encode()})
    assert (rule.name, rule.error_type, rule.transient) == ("shard_missing", "data", False)
