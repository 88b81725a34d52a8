"""`midwatch rules check`: all mistakes at once, what foreign files mean here, and rules that are too slow."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from midwatch.agents.cli import run
from midwatch.agents.rulesets import admission as rule_admission
from midwatch.rules.matching.admission import Speeds
from midwatch.rules.matching.compiler import RuleSet
from unit.rules.oellm.fixture_files import FIXTURES

GOOD = """version: 1
rules:
  - name: mesh_lost
    pattern: 'mytrainer: lost the mesh on (?P<rank>\\d+)'
    error_type: comms
    match: ['mytrainer: lost the mesh on 3']
    no_match: ['mytrainer: found the mesh']
"""
POISON = """  - name: poison
    pattern: '\\d.{30,90}NCCL'
    error_type: nccl
"""


pytestmark = pytest.mark.usefixtures("small_background")


@pytest.fixture(autouse=True)
def beside_few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default rules take seconds to compile, and the verdict is the same beside fewer."""
    monkeypatch.setattr(rule_admission, "BESIDE", "memory")


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the poison costs nine tenths of the speed and nothing else costs anything."""

    def measure(rule_set: RuleSet) -> Speeds:
        return {"noise": 100.0 if any(rule.name == "poison" for rule in rule_set.rules) else 1000.0}

    monkeypatch.setattr(rule_admission, "steady_measure", lambda: measure)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    return path


@pytest.mark.usefixtures("steady")
def test_good_rules_pass_with_their_counts(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "check", str(mine)]) == 0
    out = capsys.readouterr().out
    assert f"{mine}: 1 rule, 2 examples" in out
    assert "MB/s: noise 1000" in out


def test_all_mistakes_of_all_files_are_told_at_once_with_place_and_remedy(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.write_text(GOOD.replace("lost the mesh on 3", "lost nothing").replace("error_type", "eror_type"))
    (mine.parent / "other.yml").write_text(
        "version: 1\nrules:\n  - {name: x, pattern: '(', error_type: oom}\n"
    )
    assert run(["rules", "check", str(mine.parent)]) == 3
    err = capsys.readouterr().err
    assert re.search(r"mine\.yaml:5:5: .*eror_type", err)
    assert re.search(r"mine\.yaml:6:13: rule 'mesh_lost' does not match its example", err)
    assert re.search(r"other\.yml:3:24: RE2 does not accept `pattern`", err)
    assert "Correct the pattern or the example." in err
    assert run(["rules", "check", str(mine.parent), "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["version"] == 1
    assert len(told["errors"]) >= 3
    assert all({"where", "what", "remedy"} == set(error) for error in told["errors"])


def test_of_a_foreign_file_it_lists_what_is_not_executed_and_what_is_moot(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(FIXTURES / "gen1/experiments/run.yaml")
    assert run(["rules", "check", file, "--no-measure"]) == 0
    err = capsys.readouterr().err
    assert "not executed: ExecutionAction of event 'checkpoint'" in err
    assert "moot: `poll_interval_seconds`" in err
    assert "midwatch acts only on armed jobs" in err
    assert run(["rules", "check", file, "--no-measure", "--json"]) == 0
    kinds = {note["kind"] for note in json.loads(capsys.readouterr().out)["files"][0]["notes"]}
    assert kinds >= {"arming", "moot", "not executed"}


def test_mistakes_in_the_rules_and_in_the_policies_of_foreign_files_are_told_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["rules", "check", str(FIXTURES / "broken")]) == 3
    err = capsys.readouterr().err
    assert "patterns.yaml:4:14" in err
    assert "policies.yaml:3:34" in err


@pytest.mark.usefixtures("steady")
def test_a_rule_that_slows_the_watch_down_is_refused_and_passes_where_one_insists(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.write_text(GOOD + POISON)
    assert run(["rules", "check", str(mine)]) == 3
    err = capsys.readouterr().err
    assert (
        "mine.yaml:8:5: rule 'poison' slows all rules down: 100 MB/s on noise lines, 1000 without it" in err
    )
    assert "Replace counted repetitions" in err
    assert "rules.too_slow: quarantine" in err
    assert run(["rules", "check", str(mine), "--insist"]) == 0
    assert "mine.yaml:8:5: warning: rule 'poison' slows all rules down" in capsys.readouterr().err
    assert run(["rules", "check", str(mine), "--insist", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["too_slow"]
    assert (row["rule"], row["megabytes_per_second"], row["insisted"]) == ("poison", 100.0, True)


def test_a_pattern_that_makes_the_automaton_forget_is_found_by_this_machines_own_clock(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.write_text("version: 1\nrules:\n" + POISON)
    assert run(["rules", "check", str(mine), "--json"]) == 3
    (row,) = json.loads(capsys.readouterr().out)["too_slow"]
    assert row["rule"] == "poison"
    assert 0 < row["megabytes_per_second"] < 0.9 * row["megabytes_per_second_without"]


def test_the_schema_is_printed_for_editors(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "check", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["version"]["const"] == 1
    assert run(["rules", "check", "--schema", str(mine)]) == 2
    assert run(["rules", "check"]) == 2


def test_a_file_that_is_no_yaml_is_said_to_be_none(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = mine.rename(mine.with_suffix(".txt"))
    assert run(["rules", "check", str(text)]) == 2
    assert "its name must end in .yaml" in capsys.readouterr().err


def test_a_directory_without_rules_is_said_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules", "check", str(tmp_path)]) == 2
    assert "there are no rule files" in capsys.readouterr().err


def test_a_name_that_the_default_rules_have_is_told(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_text(GOOD.replace("mesh_lost", "cuda_out_of_memory"))
    assert run(["rules", "check", str(mine), "--no-measure"]) == 0
    assert "rule 'cuda_out_of_memory' replaces the shipped one at packs/" in capsys.readouterr().err
