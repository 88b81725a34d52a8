"""What a match worker does with its own files when it starts: only an edit puts them in force."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.rulesets.reload.edits import is_edit, names_files, signature
from midwatch.agents.rulesets.reload.topic import CurrentBundle
from midwatch.streams.records import InForce
from midwatch.streams.records.rules import Way
from midwatch.streams.settings.schema import RulesSettings, Settings


def _current(bundle: str, by: Way, made_of: str = "") -> CurrentBundle:
    return CurrentBundle(InForce(bundle, by, "ada@gpu-01", 0, (), made_of), 5)


def test_the_first_worker_of_an_installation_puts_its_files_in_force() -> None:
    assert is_edit("mine", "", None, ())


@pytest.mark.parametrize("by", ["push", "files"])
def test_files_that_were_edited_while_nobody_watched_are_an_edit(by: Way) -> None:
    assert is_edit("mine", "as they were", _current("other", by), ("other", "mine"))


@pytest.mark.parametrize("by", ["push", "files"])
def test_files_that_nobody_edited_change_nothing_at_a_restart(by: Way) -> None:
    assert not is_edit("mine", "mine", _current("other", by), ("other", "mine"))


def test_a_new_machine_does_not_overrule_a_push() -> None:
    assert not is_edit("mine", "", _current("pushed", "push"), ("pushed",))


def test_a_new_machine_with_new_files_rules_where_files_rule_and_one_with_old_files_does_not() -> None:
    assert is_edit("new", "", _current("old", "files"), ("old",))
    assert not is_edit("older", "", _current("old", "files"), ("old", "older"))


def test_what_was_in_force_without_its_slow_rules_is_no_edit_of_itself() -> None:
    assert not is_edit("mine", "another", _current("without", "files", made_of="mine"), ("without",))


def test_the_look_at_files_sees_new_changed_and_removed_ones_and_what_they_include(tmp_path: Path) -> None:
    rules, included = tmp_path / "rules", tmp_path / "other" / "base.yaml"
    rules.mkdir()
    included.parent.mkdir()
    included.write_text("a")
    asked = replace(Settings(), rules=RulesSettings(directories=(rules,)))
    seen = [signature(asked, [str(included)])]
    (rules / "own.yaml").write_text("a")
    seen.append(signature(asked, [str(included)]))
    os.utime(included, ns=(1, 1))
    seen.append(signature(asked, [str(included)]))
    (rules / "own.yaml").unlink()
    seen.append(signature(asked, [str(included)]))
    assert len(set(seen)) == 4


def test_whoever_names_rules_a_policy_or_outcomes_has_files_to_be_looked_at() -> None:
    plain = Settings()
    assert not names_files(plain)
    for own in (
        replace(plain, policy="own.yaml"),
        replace(plain, rules=RulesSettings(directories=(Path("rules"),))),
        replace(plain, rules=RulesSettings(outcomes=Path("outcomes.json"))),
    ):
        assert names_files(own)
