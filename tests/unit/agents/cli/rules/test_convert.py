"""`midwatch rules convert`, and the commands that take a foreign file as it stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midwatch.agents.cli import run
from midwatch.agents.policies.loader import load_policy
from midwatch.rules.loader import load_bundle
from unit.rules.oellm.fixture_files import FIXTURES

RUN = FIXTURES / "gen1/experiments/run.yaml"


def test_a_file_becomes_a_pair_and_what_it_does_not_do_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules", "convert", str(RUN), "--output", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "run.rules.yaml" in out
    assert "ExecutionAction of event 'checkpoint' is not executed: python evaluate.py" in err
    assert "midwatch acts only on armed jobs" in err
    rules = load_bundle(str(tmp_path / "run.rules.yaml"))
    assert (len(rules.rules), rules.any_line) == (10, True)
    assert load_policy(str(tmp_path / "run.policy.yaml")).clauses == load_policy(str(RUN)).clauses
    assert "# Converted from" in (tmp_path / "run.rules.yaml").read_text()


def test_a_file_that_only_names_presets_becomes_a_pair_that_decides_as_they_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    basic = tmp_path / "basic.yaml"
    basic.write_text("defaults:\n  - /monitoring: megatron_production\n  - /restart: megatron_transient\n")
    assert run(["rules", "convert", str(basic), "--output", str(tmp_path / "ours")]) == 0
    out, err = capsys.readouterr()
    assert "basic.rules.yaml" in out
    assert "basic.policy.yaml" in out
    assert "nothing in this file asks for a restart" not in err
    made = load_policy(str(tmp_path / "ours" / "basic.policy.yaml"))
    assert made.clauses == load_policy("megatron_transient").clauses == load_policy(str(basic)).clauses
    assert made.name == "basic"
    ours, preset = (
        load_bundle(str(tmp_path / "ours" / "basic.rules.yaml")),
        load_bundle("megatron_production"),
    )
    assert [rule.name for rule in ours.rules] == [rule.name for rule in preset.rules]


def test_compatible_counting_is_written_down_as_the_restarts_that_it_gives(tmp_path: Path) -> None:
    assert run(["rules", "convert", str(RUN), "--output", str(tmp_path), "--retries", "compat"]) == 0
    policy = load_policy(str(tmp_path / "run.policy.yaml"))
    limits = [(clause.max_restarts, clause.across_modes) for clause in policy.clauses.values()]
    assert limits[:3] == [(2, True), (1, True), (0, True)]


def test_of_a_directory_what_watches_is_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "config"
    for folder in ("monitoring", "backend"):
        (source / folder).mkdir(parents=True)
    (source / "monitoring/own.yaml").write_text("log_events: [{name: a, pattern: b}]\n")
    (source / "backend/own.yaml").write_text("model: {layers: 3}\n")
    out = tmp_path / "out"
    assert run(["rules", "convert", str(source), "--output", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [Path(row["file"]).parent.name for row in told["converted"]] == ["monitoring"]
    written = sorted(p.relative_to(out).as_posix() for p in out.rglob("*.yaml"))
    assert written == ["monitoring/own.policy.yaml", "monitoring/own.rules.yaml"]
    assert {note["kind"] for note in told["converted"][0]["notes"]} >= {"arming"}


def test_nothing_is_written_over_and_nothing_on_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules", "convert", str(FIXTURES / "broken"), "--output", str(tmp_path)]) == 3
    err = capsys.readouterr().err
    assert "patterns.yaml:4:14" in err
    assert "policies.yaml:3:34" in err
    assert list(tmp_path.iterdir()) == []
    assert run(["rules", "convert", str(RUN), "--output", str(tmp_path)]) == 0
    assert run(["rules", "convert", str(RUN), "--output", str(tmp_path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert run(["rules", "convert", str(RUN), "--output", str(tmp_path), "--force"]) == 0


def test_a_file_of_ours_is_no_file_of_theirs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ours.yaml").write_text("version: 1\nrules: []\n")
    assert run(["rules", "convert", str(tmp_path / "ours.yaml"), "--output", str(tmp_path)]) == 3
    assert "no configuration of oellm-autoexp" in capsys.readouterr().err


def test_replay_takes_such_a_file_for_rules_and_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.log"
    log.write_text("step 7 loss 2.5\nstep 8 loss 2.5\nNCCL collective timeout\n")
    arguments = ["replay", str(log), "--rules", str(RUN), "--policy", str(RUN), "--json"]
    assert run(arguments) == 1
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["verdict"]["error_type"], told["verdict"]["step"]) == ("nccl_timeout", 8)
    assert (told["decision"]["action"], told["decision"]["policy"]) == ("restart", "run")
    assert "ExecutionAction" in err
