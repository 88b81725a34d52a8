"""`midwatch rules explain`: why a line does, or does not, match."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from midwatch.agents.cli import run

RULES = """version: 1
rules:
  - name: mesh_lost
    pattern: 'mytrainer: lost the mesh on (?P<rank>\\d+)'
    error_type: comms
    remedy: Start again.
  - {name: any_loss, pattern: 'lost the \\w+', error_type: unknown, fallback: true}
  - {name: at_front, pattern: 'lost the mesh', error_type: comms, at_start: true}
  - {name: other, pattern: 'out of paper', error_type: storage}
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(RULES)
    return str(path)


def test_a_match_names_rule_place_literal_captures_and_remedy(
    rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules", "explain", "mytrainer: lost the mesh on 7", "--rules", rules]) == 0
    out = capsys.readouterr().out
    assert f"mesh_lost (cause, comms; {rules}:3:5)" in out
    assert "matched  'mytrainer: lost the mesh on 7', found by '" in out
    assert "rank     7" in out
    assert "remedy   Start again." in out


def test_of_rules_that_match_it_says_which_the_watch_keeps_and_why_not_the_others(
    rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules", "explain", "mytrainer: lost the mesh on 7", "--rules", rules, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    hits = {hit["rule"]: hit for hit in told["hits"]}
    assert (told["version"], told["others"]) == (1, 1)
    assert (hits["mesh_lost"]["counts_as"], hits["mesh_lost"]["why"]) == ("cause", "")
    assert hits["any_loss"]["counts_as"] is None
    assert "another rule knows more" in hits["any_loss"]["why"]
    assert "only at the start of a line" in hits["at_front"]["why"]


def test_a_line_that_calls_itself_a_warning_counts_as_context_only(
    rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "2026-03-02 11:00:00 WARNING mytrainer: lost the mesh on 7"
    assert run(["rules", "explain", line, "--rules", rules]) == 0
    assert "counts as context only" in capsys.readouterr().out


def test_a_line_without_a_match_names_the_rules_of_which_a_literal_stands_there(
    rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules", "explain", "mytrainer: lost the mesh on purpose", "--rules", rules, "--json"]) == 0
    near = json.loads(capsys.readouterr().out)["near"]
    assert [miss["rule"] for miss in near] == ["mesh_lost"]
    assert near[0]["literal"] in "mytrainer: lost the mesh on "
    assert run(["rules", "explain", "all is well", "--rules", rules]) == 1
    out = capsys.readouterr().out
    assert "no rule matches" in out
    assert "not the other 4 rules: the line holds none of their literals" in out


def test_colours_are_taken_out_before_as_in_the_watch_and_two_lines_are_refused(
    rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules", "explain", "\x1b[31mout of\x1b[0m paper", "--rules", rules]) == 0
    assert run(["rules", "explain", "one\ntwo", "--rules", rules]) == 2
    assert "midwatch replay -" in capsys.readouterr().err


BLOCKS = """version: 1
rules:
  - {name: fetching, block: traceback, pattern: '(?s)loader\\.py.*(?P<what>KeyError)', error_type: data}
  - {name: saving, block: traceback, pattern: '(?s)saver\\.py.*KeyError', error_type: checkpoint}
  - {name: warming, pattern: 'link is down', error_type: comms, stop_pattern: '^training begins'}
"""
TRACEBACK = "Traceback (most recent call last):\n  File loader.py, by saver.py\nKeyError: 3\n"


def test_a_whole_traceback_is_explained_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "blocks.yaml"
    path.write_text(BLOCKS)
    given = io.TextIOWrapper(io.BytesIO(TRACEBACK.encode()))
    monkeypatch.setattr("sys.stdin", given)
    assert run(["rules", "explain", "-", "--rules", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [hit["rule"] for hit in told["hits"]] == ["fetching", "saving"]
    assert told["hits"][0]["captures"] == {"what": "KeyError"}
    assert told["hits"][0]["counts_as"] == "cause"
    assert told["not_asked"] == 0


def test_of_one_line_it_says_that_blocks_were_not_asked_and_whose_watch_it_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "blocks.yaml"
    path.write_text(BLOCKS)
    assert run(["rules", "explain", "training begins", "--rules", str(path)]) == 1
    out = capsys.readouterr().out
    assert "ends the watch of warming" in out
    assert "not tried: 2 rules over whole tracebacks" in out
