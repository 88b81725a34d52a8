"""Which files of rules are tried on their examples when a bundle is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.rules.errors import RuleErrors
from midwatch.rules.files import rule_reader
from midwatch.rules.loader import load_bundle, shipped_files

WRONG = """\
version: 1
rules:
  - name: own_rule
    pattern: toy broke
    error_type: exception
    match: ["toy is whole"]
"""


def test_shipped_files_are_loaded_without_their_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(rule_reader, "_try_patterns", lambda rule, _fields: tried.append(rule.name))
    rule_reader._read_once.cache_clear()
    assert len(load_bundle("default").rules) > 500
    assert tried == []


def test_a_file_of_a_user_is_tried_and_its_mistake_has_its_place(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(WRONG + "include: [default]\n")
    with pytest.raises(RuleErrors, match=r"own\.yaml:6:13: rule 'own_rule' does not match its example"):
        load_bundle(str(own))


def test_a_file_of_a_user_with_the_name_of_a_shipped_one_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = next(iter(shipped_files()))
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuleErrors, match="does not match its example"):
        load_bundle(name)
