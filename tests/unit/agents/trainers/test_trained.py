"""Whether a run had trained before a collective timed out, by what each trainer prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.rules.matching.compiler import RuleSet
from unit.agents.conftest import Watch

TIMEOUT = (
    "[rank3]:[E302 11:52:40.118290733 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=4188, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024,"
    " Timeout(ms)=30000) ran for 30041 milliseconds before timing out."
)
_HERE = Path(__file__).parent
TRAINED: list[dict[str, Any]] = yaml.load((_HERE / "trained.yaml").read_text("utf-8"), yaml.CSafeLoader)
PROJECTS = {sample["source"].split()[0] for sample in TRAINED} - {"none"}
UNSEEN: list[dict[str, Any]] = yaml.load((_HERE / "unseen.yaml").read_text("utf-8"), yaml.CSafeLoader)


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
    assert len(PROJECTS) >= 30
    assert sum(sample["source"] != "none" for sample in TRAINED) >= 60


@pytest.mark.parametrize("sample", UNSEEN, ids=lambda sample: sample["what"])
def test_what_is_no_training_shows_none(watch: Watch, sample: dict[str, Any]) -> None:
    done = _timed_out(watch, sample["lines"])
    assert (done.verdict.transient, done.decision.action) == (None, "hold")
    assert "no training step was seen" in done.decision.reason
    assert "role: progress" in done.decision.reason


@pytest.mark.parametrize(
    "line",
    [
        "[titan] root - INFO - Finished saving the checkpoint (or staging) in 5.53 seconds.",
        "[INFO] [Torch] Saved /ckpt/global_step100/mp_rank_00_model_states.pt.",
        "Saved checkpoint to /ckpt/toy/step_500.pt",
        "  successfully saved checkpoint from iteration     500 to /ckpt/toy [ t 1/2, p 1/1 ]",
        "| saved checkpoint toy/checkpoint_1_500.pt (epoch 1 @ 500 updates) (writing took 3.1 seconds)",
    ],
)
def test_a_complete_checkpoint_shows_that_the_run_had_trained(watch: Watch, line: str) -> None:
    assert _timed_out(watch, [line]).decision.action == "restart"


def test_numbers_that_climb_in_any_loop_show_it_too(watch: Watch) -> None:
    seen = _timed_out(watch, [f"the toy did step {number} in 1.2 s" for number in (10, 20, 30)])
    assert (seen.verdict.step, seen.decision.action) == (None, "restart")
    assert _timed_out(watch, ["the toy did step 10 in 1.2 s"]).decision.action == "hold"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("Epoch 1, Step 10, Loss: 2.31", "epoch_batch"),  # its step counts anew in each epoch
        ("Validation epoch 1 step 10 loss 2.31", "evaluation_batch"),
        ("Evaluating:  40%|####      | 4/10 [00:04<00:06,  1.01it/s, loss=2.31]", "evaluation_bar"),
    ],
)
def test_the_rule_that_knows_most_of_a_line_reads_it(watch: Watch, line: str, kept: str) -> None:
    done = _timed_out(watch, [line] * 3)
    assert done.verdict.step is None
    assert done.verdict.phase == ("training" if kept == "epoch_batch" else "evaluation")


def test_the_page_on_rules_lists_them() -> None:
    root = _HERE.parents[3]
    page = (root / "docs" / "rules.md").read_text("utf-8")
    listed = page.partition("trained.yaml):")[2].partition("\n\nmidwatch reads a loop")[0]
    assert set(re.findall("`([^`]+)`", listed)) == PROJECTS
    assert f"the progress of the {len(PROJECTS)} projects below" in page
    assert f"Progress of {len(PROJECTS)} projects' trainers is read" in (root / "CHANGELOG.md").read_text(
        "utf-8"
    )
