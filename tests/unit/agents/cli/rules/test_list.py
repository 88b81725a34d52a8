"""`midwatch rules list`, `diff`, `test` and `bench`, and the list of them all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import run as start

import pytest

from midwatch.agents.cli import run
from midwatch.rules.loader import load_bundle

ONE = """version: 1
rules:
  - name: mesh_lost
    pattern: 'mytrainer: lost the mesh'
    error_type: comms
    transient: true
    match: ['mytrainer: lost the mesh']
"""


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_list_shows_name_role_type_transience_and_pack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = written(tmp_path / "mine.yaml", ONE)
    assert run(["rules", "list", "--rules", mine]) == 0
    out, err = capsys.readouterr()
    assert out.split() == ["mesh_lost", "cause", "comms", "transient", "mine"]
    assert "megatron_production" in err


def test_the_list_as_json_has_every_rule_of_the_default_and_the_names_that_can_be_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["rules", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["version"] == 1
    assert [rule["name"] for rule in told["rules"]] == [rule.name for rule in load_bundle("default").rules]
    assert {"name", "role", "error_type", "transient", "pack"} <= set(told["rules"][0])
    assert "nccl" in told["packs"]
    assert "default" in told["presets"]


def test_a_difference_is_told_by_rule_and_field_and_by_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = written(tmp_path / "old.yaml", ONE)
    text = ONE.replace("transient: true", "transient: false") + "  - {name: b, pattern: b, role: context}\n"
    new = written(
        tmp_path / "new.yaml", text.replace("version: 1\n", "version: 1\nsilence: {training: 5m}\n")
    )
    assert run(["rules", "diff", old, new]) == 1
    out = capsys.readouterr().out
    assert "added   b\n" in out
    assert "changed mesh_lost\n          transient: True → False" in out
    assert "silence: none → training 300 s" in out
    assert run(["rules", "diff", old, new, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [(row["what"], row["name"]) for row in told["rules"]] == [("added", "b"), ("changed", "mesh_lost")]
    assert run(["rules", "diff", old, old]) == 0


def test_examples_are_run_and_counted_and_a_wrong_one_is_told_by_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = written(
        tmp_path / "mine.yaml", ONE + "  - {name: b, pattern: bbb, role: context, no_match: [c]}\n"
    )
    assert run(["rules", "test", mine]) == 0
    out, err = capsys.readouterr()
    assert out == "2 rules: 1 lines match and 1 do not match, as they should\n"
    assert err == "without an example: b\n"
    written(tmp_path / "mine.yaml", ONE.replace("match: ['mytrainer: lost", "match: ['mytrainer: found"))
    assert run(["rules", "test", str(tmp_path)]) == 3
    assert "mine.yaml:7:13: rule 'mesh_lost' does not match its example" in capsys.readouterr().err
    assert run(["rules", "test", mine, "--json"]) == 3
    assert len(json.loads(capsys.readouterr().out)["errors"]) == 1


def test_a_bench_tells_the_speed_and_what_was_found_in_a_persons_own_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = written(tmp_path / "mine.yaml", ONE)
    log = written(tmp_path / "a.log", "fine\n" * 20_000 + "\x1b[31mmytrainer: lost the mesh\x1b[0m\r\n")
    assert run(["rules", "bench", log, "--rules", mine, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["version"], told["lines"], told["hits"]) == (1, 20_001, {"mesh_lost": 1})
    assert told["megabytes_per_second"] > 0
    assert run(["rules", "bench", log, "--rules", mine]) == 0
    out = capsys.readouterr().out
    assert "20001 lines, 1 rules" in out
    assert "1  mesh_lost" in out


def test_a_name_that_is_not_there_is_told_with_a_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "list", "--rules", "megatron_basik"]) == 3
    assert "Did you mean 'megatron_basic'?" in capsys.readouterr().err


def test_the_help_of_the_group_loads_no_rule_engine() -> None:
    code = (
        "import sys; from midwatch.agents.cli import run; run(['rules', '--help']);"
        " sys.exit(any(name.startswith(('midwatch.rules', 're2', 'yaml')) for name in sys.modules))"
    )
    done = start([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in ("bench", "check", "diff", "explain", "list", "test"))
