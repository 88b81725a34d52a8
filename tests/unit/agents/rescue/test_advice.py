"""Which change midwatch proposes after a failure, and whom it blames."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.agents.query.timeline import Attempt, Timeline
from midwatch.agents.rescue.advice import Change, blame, change_for
from midwatch.streams.records import Incident, Phase, Spec, Verdict

JOB = "local:ann/run"


def advised(
    directory: Path, text: str, phase: Phase = "evaluation", error_type: str = "oom"
) -> Change | None:
    (directory / "c.yaml").write_text(text)
    spec = Spec(JOB, "local", ("python", "c.yaml"), str(directory), {}, "ann", (), "", "verdict", False)
    verdict = Verdict("failed", "crash", error_type, "memory", phase=phase)
    incident = Incident(f"{JOB}#1", JOB, 1, "local:1:2", "settled", 1, verdict)
    return change_for(Timeline(JOB, (Attempt(1, incident),), signed=spec))


@pytest.mark.capability("S000-10")
@pytest.mark.parametrize(
    ("text", "phase", "change"),
    [
        ("batch_size: 64\nval_batch_size: 32\n", "evaluation", ("val_batch_size", 32, 16)),
        ("batch_size: 64\nval_batch_size: 32\n", "training", ("batch_size", 64, 32)),
        ("data: {eval: {batch_size: 8}, batch_size: 4}\n", "evaluation", ("data.eval.batch_size", 8, 4)),
        (
            "global_batch_size: 512\nmicro_batch_size: 4\n",
            "training",
            ("micro_batch_size", 4, 2),
        ),
        (
            "per_device_train_batch_size: 8\nper_device_eval_batch_size: 16\n",
            "training",
            ("per_device_train_batch_size", 8, 4),
        ),
    ],
)
def test_half_the_batch_of_the_phase_that_ran_out_of_memory(
    tmp_path: Path, text: str, phase: Phase, change: tuple[str, int, int]
) -> None:
    assert advised(tmp_path, text, phase) == Change("c.yaml", *change)


@pytest.mark.parametrize(
    "text",
    ["lr: 1\n", "batch_size: 64\n", "val_batch_size: 1\n", "a: {val_bs: 4}\nb: {val_bs: 4}\n", "- 1\n"],
)
def test_no_change_is_made_up(tmp_path: Path, text: str) -> None:
    assert advised(tmp_path, text) is None


def test_another_failure_names_no_key(tmp_path: Path) -> None:
    assert advised(tmp_path, "val_batch_size: 32\n", error_type="nccl_timeout") is None


@pytest.mark.capability("S000-09")
@pytest.mark.parametrize(
    ("error_type", "family", "said"),
    [
        ("oom", "memory", "software: the job asked for more memory"),
        ("hardware", "infra", "hardware: exclude the node"),
        ("exception", "code", "software, not hardware"),
        ("nccl_timeout", "comms", ""),
    ],
)
def test_whom_it_blames(error_type: str, family: str, said: str) -> None:
    found = blame(Verdict("failed", "crash", error_type, family))
    assert found.startswith(said)
    assert bool(found) == bool(said)
