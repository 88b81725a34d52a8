"""Whether a run had trained before a collective timed out, by what each trainer prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from midwatch.agents.replay.job_replay import Replayed
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.rules.matching.compiler import RuleSet
from unit.agents.conftest import Watch

TIMEOUT = (
    "[rank3]:[E302 11:52:40.118290733 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=48, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024,"
    " Timeout(ms)=30000) ran for 30041 milliseconds before timing out."
)
_HERE = Path(__file__).parent
TRAINED: list[dict[str, Any]] = yaml.safe_load((_HERE / "trained.yaml").read_text("utf-8"))
UNSEEN: list[dict[str, Any]] = yaml.safe_load((_HERE / "unseen.yaml").read_text("utf-8"))


def _timed_out(watch: Watch, lines: list[str]) -> Replayed:
    return watch("\n".join([*lines, TIMEOUT]) + "\n")


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return watched_rules(("default",), scan=False).rules


@pytest.mark.parametrize("sample", TRAINED, ids=lambda sample: sample["framework"])
def test_a_run_of_each_trainer_is_known_to_have_trained(watch: Watch, sample: dict[str, Any]) -> None:
    done = _timed_out(watch, sample["lines"])
    assert done.verdict.error_type == "nccl_timeout"
    assert (done.verdict.transient, done.decision.action) == (True, "restart"), done.decision.reason


@pytest.mark.parametrize("sample", TRAINED, ids=lambda sample: sample["framework"])
def test_a_line_of_each_trainer_gives_its_numbers(rules: RuleSet, sample: dict[str, Any]) -> None:
    found = {match.rule.name: match for match in rules.match_line(sample["lines"][-1].encode())}
    assert sample["rule"] in found
    captured = found[sample["rule"]].captures()
    assert {key: captured.get(key) for key in sample["captures"]} == sample["captures"]


def test_the_table_covers_many_trainers() -> None:
    assert len({sample["source"].split()[0] for sample in TRAINED}) >= 30
    assert len(TRAINED) >= 60


@pytest.mark.parametrize("sample", UNSEEN, ids=lambda sample: sample["what"])
def test_what_is_no_training_shows_none(watch: Watch, sample: dict[str, Any]) -> None:
    done = _timed_out(watch, sample["lines"])
    assert (done.verdict.transient, done.decision.action) == (None, "hold")
    assert "no training step was seen" in done.decision.reason
    assert "role: progress" in done.decision.reason
