"""Files as a bundle: whose word wins, what is told, and every mistake of every file at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.policies.loader import shipped_policies
from midwatch.agents.rulesets.content import content
from midwatch.agents.rulesets.draft import Draft, admitted, read_draft
from midwatch.agents.rulesets.outcomes import counts_text, own_outcomes
from midwatch.rules.errors import RuleErrors
from midwatch.rules.prefilter.workloads import WORKLOADS
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records import codec
from midwatch.streams.settings.schema import RulesSettings, Settings

OWN = """version: 1
rules:
  - {name: mesh_lost, pattern: 'the mesh of racks was lost', error_type: communication}
"""
POLICY = "policy: {name}\nmodes:\n  crash: {{kind: never}}\n"


def settings(*own: Path, policy: str = "verdict", presets: tuple[str, ...] = ("memory",)) -> Settings:
    return replace(Settings(), policy=policy, rules=RulesSettings(presets=presets, directories=own))


def _told(draft: Draft) -> str:
    return "\n".join(str(note) for note in draft.notes)


def test_a_bundle_holds_the_presets_the_own_rules_and_every_policy(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "mine.policy.yaml").write_text(POLICY.format(name="mine"))
    draft = read_draft(settings(tmp_path))
    whole = content(draft.hash, draft.record)
    assert {"mesh_lost", "cuda_out_of_memory"} <= {rule.name for rule in whole.rules}
    assert whole.policies.keys() == {*shipped_policies(), "mine"}


def test_the_policy_of_the_settings_is_known_by_its_own_name_and_as_they_name_it(tmp_path: Path) -> None:
    (tmp_path / "careful.yaml").write_text(POLICY.format(name="mine"))
    draft = read_draft(settings(policy=str(tmp_path / "careful.yaml")))
    policies = content(draft.hash, draft.record).policies
    assert policies["mine"] == policies[str(tmp_path / "careful.yaml")]


def test_a_person_s_own_policy_stands_in_place_of_the_shipped_one_and_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "verdict.policy.yaml").write_text(POLICY.format(name="verdict"))
    draft = read_draft(settings(tmp_path))
    assert "kind: never" in draft.record.policies["verdict"]
    assert "policy 'verdict' replaces the shipped one" in _told(draft)


def test_of_two_own_policies_of_one_name_the_first_is_taken_and_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.policy.yaml").write_text(POLICY.format(name="mine"))
    (tmp_path / "b.policy.yaml").write_text(POLICY.format(name="mine").replace("never", "always"))
    draft = read_draft(settings(tmp_path))
    assert "kind: never" in draft.record.policies["mine"]
    assert "b.policy.yaml:1:1: warning: policy 'mine' is not used" in _told(draft)


def test_the_same_files_elsewhere_are_the_same_bundle(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.yaml").write_text(OWN)
    here, there = (read_draft(settings(tmp_path / name)) for name in ("here", "there"))
    assert here.hash == there.hash
    assert here.files != there.files


def test_every_mistake_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("version: 1\nrules: [{name: a, pattern: '(', error_type: oom}]\n")
    (tmp_path / "b.yaml").write_text("version: 1\nrules: [{name: b, pattern: x, colour: red}]\n")
    (tmp_path / "c.policy.yaml").write_text("policy: c\nmodes: {crash: {kind: perhaps}}\n")
    with pytest.raises(RuleErrors) as caught:
        read_draft(settings(tmp_path))
    files = {Path(error.location.file).name for error in caught.value.errors}
    assert files == {"a.yaml", "b.yaml", "c.policy.yaml"}


def test_a_policy_that_nobody_has_is_told_with_the_names_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="no policy called 'mien'"):
        read_draft(settings(policy="mien"))


def test_given_paths_and_presets_stand_in_place_of_those_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "other.yaml").write_text(OWN.replace("mesh_lost", "other"))
    asked = settings(tmp_path / "own.yaml")
    names = {rule.name for rule in read_draft(asked, [tmp_path / "other.yaml"], ["storage"]).rules}
    assert "other" in names
    assert not {"mesh_lost", "cuda_out_of_memory"} & names


def test_an_edit_that_is_plainly_cheap_needs_no_long_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object) -> None:
        raise AssertionError("the whole set was measured")

    (tmp_path / "own.yaml").write_text(OWN)
    draft = read_draft(settings(tmp_path))
    monkeypatch.setattr("midwatch.agents.rulesets.admission.admit_user_rules", measured)
    assert admitted(draft, "refuse").hash == draft.hash, "nor does the first start of a watch"
    (tmp_path / "own.yaml").write_text(OWN.replace("the mesh of racks was lost", "\\d+ of \\d+"))
    costly = read_draft(settings(tmp_path))
    with pytest.raises(AssertionError, match="the whole set was measured"):
        admitted(costly, "refuse")
    (tmp_path / "own.yaml").write_text(OWN)
    when_idle = dict.fromkeys(WORKLOADS, 1e9)
    assert admitted(draft, "refuse", without=when_idle).hash == draft.hash
    known = [rule.pattern for rule in costly.rules]
    assert admitted(costly, "refuse", in_force=known).hash == costly.hash


def test_own_outcomes_are_part_of_the_bundle_that_the_settings_name(tmp_path: Path) -> None:
    file = tmp_path / "outcomes.json"
    file.write_text(counts_text({"oom/permanent/stepped": (1, 3)}))
    plain, named = settings(), settings()
    named = replace(named, rules=replace(named.rules, outcomes=file))
    draft = read_draft(named)
    assert draft.hash != read_draft(plain).hash
    assert str(file) in draft.read, "an edit of it is seen"
    outcomes = content(draft.hash, codec.decode(codec.encode(draft.record))).outcomes
    assert outcomes == own_outcomes({"oom/permanent/stepped": (1, 3)})
    file.write_text("[]")
    with pytest.raises(ConfigurationError, match="no file of outcomes"):
        read_draft(named)
    file.unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_draft(named)
