"""What `midwatch replay` says of the chance, on logs of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from midwatch.agents.cli import midwatch

STEPS = "".join(f"step {number} loss 2.{number:02}\n" for number in range(1, 22))
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


def test_json_lists_the_ends_that_carry_the_share_and_how_many_tell_of_this_one(tmp_path: Path) -> None:
    chance = json.loads(_replayed(tmp_path, BROKEN_CARD, "--json"))["verdict"]["chance"]
    assert chance["classes"] == [{key: chance[key] for key in ("like", "worth", "of")}]
    assert chance["grounds"] >= chance["of"]


@pytest.mark.parametrize("code", ["1", "137", "143"])
def test_a_bare_exit_code_is_held_under_expected_cost_for_nothing_like_it_was_counted(
    tmp_path: Path, code: str
) -> None:
    text = _replayed(tmp_path, STEPS, "--exit-code", code, "--policy", "expected_cost")
    assert "would hold: unknown: " in text
    assert "rests on 0 ends of its kind" in text


def test_a_scheduler_s_bare_word_on_memory_is_held_for_no_such_end_was_worth_a_restart(
    tmp_path: Path,
) -> None:
    word = tmp_path / "scheduler.txt"
    word.write_text("JobID|State|ExitCode\n4711|OUT_OF_MEMORY|0:125\n")
    text = _replayed(tmp_path, STEPS, "--scheduler", str(word), "--policy", "expected_cost")
    assert "failed: host_oom" in text
    assert "would hold: 0.02 x 6.00 h of waiting" in text
    assert "0 of 31 labelled ends like this (host_oom) were judged worth a restart" in text


def test_a_log_without_a_failure_has_no_chance(tmp_path: Path) -> None:
    assert "chance" not in json.loads(_replayed(tmp_path, "hello\n", "--json"))["verdict"]


def test_replay_tells_what_expected_cost_would_weigh(tmp_path: Path) -> None:
    text = _replayed(tmp_path, BROKEN_CARD, "--policy", "expected_cost")
    assert "would restart" in text
    assert "x 6.00 h of waiting" in text
    assert "x 2.00 h of a wasted start" in text
