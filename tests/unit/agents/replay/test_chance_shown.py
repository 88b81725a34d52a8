"""What `midwatch replay` says of the chance, on logs of our own."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from midwatch.agents.cli import midwatch

BROKEN_CARD = "NVRM: Xid (PCI:0000:1b:00): 79, pid=4711, GPU has fallen off the bus.\n"


def _replayed(tmp_path: Path, text: str, *options: str) -> str:
    file = tmp_path / "run.log"
    file.write_text(text)
    return CliRunner().invoke(midwatch, ["replay", str(file), *options]).output


def test_replay_says_how_often_a_restart_was_right_after_such_an_end(tmp_path: Path) -> None:
    chance = json.loads(_replayed(tmp_path, BROKEN_CARD, "--json"))["verdict"]["chance"]
    assert chance["share"] > 0.8
    assert chance["of"] >= chance["worth"] > 5
    sentence = f"{chance['worth']} of {chance['of']} labelled ends like this ({chance['like']})"
    text = _replayed(tmp_path, BROKEN_CARD)
    assert f"chance    {chance['share']:.0%}: {sentence} were judged worth a restart" in text


def test_a_log_without_a_failure_has_no_chance(tmp_path: Path) -> None:
    assert "chance" not in json.loads(_replayed(tmp_path, "hello\n", "--json"))["verdict"]


def test_replay_tells_what_expected_cost_would_weigh(tmp_path: Path) -> None:
    text = _replayed(tmp_path, BROKEN_CARD, "--policy", "expected_cost")
    assert "would restart" in text
    assert "x 6.00 h of waiting" in text
    assert "x 2.00 h of a wasted start" in text
