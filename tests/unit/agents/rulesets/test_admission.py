"""Where a worker loads a person's own rules: slow ones stop it, unless the settings say otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.rulesets import admission as rule_admission
from midwatch.agents.rulesets.bundles import rules_of, watched_rules
from midwatch.rules.errors import RuleErrors
from midwatch.rules.loader import load_bundle, shipped_files
from midwatch.rules.matching.admission import Speeds
from midwatch.rules.matching.compiler import RuleSet
from midwatch.streams.settings.kinds import TooSlow
from midwatch.streams.settings.schema import RulesSettings, Settings

OWN = """version: 1
include: [storage]
rules:
  - {name: fine, pattern: 'mytrainer: lost the mesh', error_type: comms}
  - {name: slow, pattern: '\\d.{30,90}NCCL', error_type: nccl}
"""


def measure(rule_set: RuleSet) -> Speeds:
    """A machine that the rule named slow costs nine tenths of the speed."""
    return {"noise": 100.0 if any(rule.name == "slow" for rule in rule_set.rules) else 1000.0}


def untouched(rule_set: RuleSet) -> Speeds:  # noqa: ARG001 (the signature of a measure)
    raise AssertionError("shipped rules were measured")


pytestmark = pytest.mark.usefixtures("small_background")


@pytest.fixture(autouse=True)
def beside_few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_admission, "BESIDE", "memory")


def settings(tmp_path: Path, text: str, too_slow: TooSlow = "refuse") -> Settings:
    (tmp_path / "own.yaml").write_text(text)
    rules = RulesSettings(presets=("memory",), directories=(tmp_path,), too_slow=too_slow)
    return replace(Settings(), rules=rules)


def test_a_worker_does_not_start_with_a_slow_rule_and_says_place_cost_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(RuleErrors) as caught:
        rules_of(settings(tmp_path, OWN), measure)
    assert [error.location.line for error in caught.value.errors] == [5]
    assert "own.yaml:5:5: rule 'slow' slows all rules down: 100 MB/s on noise lines, 1000 without it" in str(
        caught.value
    )
    assert "Replace counted repetitions" in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("way", "there", "told"),
    [("quarantine", False, "left out"), ("accept", True, "used nevertheless")],
)
def test_who_insists_watches_without_it_or_with_it_and_is_told(
    tmp_path: Path, way: TooSlow, there: bool, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    watched = rules_of(settings(tmp_path, OWN, way), measure)
    names = {rule.name for rule in watched.rules.rules}
    assert "fine" in names
    assert ("slow" in names) is there
    assert told in caplog.text


def test_shipped_rules_are_trusted_and_what_is_watched_is_what_replay_watches(tmp_path: Path) -> None:
    packs = "version: 1\ninclude: [storage]\n"
    assert rules_of(settings(tmp_path, packs), untouched).rules.rules
    fine = "\n".join(OWN.splitlines()[:-1])
    watched = rules_of(settings(tmp_path, fine), measure)
    assert watched.hash == watched_rules(("memory", str(tmp_path / "own.yaml")), scan=False).hash


def test_without_a_preset_own_rules_are_not_compared_with_a_watch_of_nothing(tmp_path: Path) -> None:
    def by_count(rule_set: RuleSet) -> Speeds:
        return {"noise": 1000.0 / (1 + len(rule_set.rules))}

    alone = settings(tmp_path, "version: 1\nrules: [{name: a, pattern: lost, error_type: comms}]\n")
    alone = replace(alone, rules=replace(alone.rules, presets=()))
    assert [rule.name for rule in rules_of(alone, by_count).rules.rules] == ["a"]


def test_who_edits_a_copy_of_the_shipped_rules_is_not_compared_with_a_watch_of_nothing(
    tmp_path: Path,
) -> None:
    def by_count(rule_set: RuleSet) -> Speeds:
        return {"noise": 1000.0 / (1 + len(rule_set.rules))}

    copy = shipped_files()["packs/memory.yaml"].decode()
    edited = settings(tmp_path, copy + "\n  - {name: mine, pattern: my own words, error_type: oom}\n")
    edited = replace(edited, rules=replace(edited.rules, presets=()))
    watched = rules_of(edited, by_count).rules.rules
    assert {rule.name for rule in watched} == {"mine", *(rule.name for rule in load_bundle("memory").rules)}
    (tmp_path / "own.yaml").write_text(copy)
    assert rules_of(edited, untouched).rules.rules


def test_a_policy_may_lie_beside_the_rules(tmp_path: Path) -> None:
    (tmp_path / "own.policy.yaml").write_text("policy: own\nmodes: {}\n")
    assert rules_of(settings(tmp_path, "version: 1\nrules: []\n"), untouched).rules.rules


def test_a_person_s_rule_stands_in_place_of_the_shipped_one_of_its_name_and_that_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "version: 1\nrules: [{name: cuda_out_of_memory, pattern: mine, error_type: oom}]\n"
    watched = rules_of(settings(tmp_path, text), measure)
    (rule,) = [rule for rule in watched.rules.rules if rule.name == "cuda_out_of_memory"]
    assert rule.pattern == "mine"
    assert "own.yaml:2:9: changed: rule 'cuda_out_of_memory' replaces the shipped" in caplog.text
    assert "Give it another name to use both." in caplog.text


def test_a_copy_of_a_shipped_rule_needs_no_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    copy = shipped_files()["packs/memory.yaml"].decode()
    rules_of(settings(tmp_path, copy), measure)
    assert "replaces" not in caplog.text


def test_of_two_own_rules_of_one_name_the_first_is_watched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "second.yaml").write_text("version: 1\nrules: [{name: a, pattern: two, error_type: oom}]\n")
    text = "version: 1\nrules: [{name: a, pattern: one, error_type: oom}]\n"
    watched = rules_of(settings(tmp_path, text), measure)
    assert [rule.pattern for rule in watched.rules.rules if rule.name == "a"] == ["one"]
    assert "second.yaml:2:9: warning: rule 'a' is not used: a rule of that name is at" in caplog.text
