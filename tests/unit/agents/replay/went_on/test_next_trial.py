"""The agent of a sweep began another trial: the one before ended, and the sweep went on."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.went_on.next_trial import next_trial_began
from unit.agents.conftest import Watch

AGENT = "2026-03-02 11:52:40,118 - wandb.wandb_agent - INFO - "
BEGINS = f"{AGENT}Agent starting run with config:\n\tlr: 0.1\n"
STOPS = f"{AGENT}Stop: toy7\n"
SIGNAL = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4188 got signal: 15\n"
FAILED = (
    "Traceback (most recent call last):\n  File \"toy.py\", line 3, in <module>\n    toy()\nKeyError: 'toy'\n"
)
IN_PYTHON = "wandb: Agent Starting Run: toy8 with config:\n"


def _began(text: str, last: str) -> bool:
    return next_trial_began(LogFile("toy.log", text.encode(), 0.0), text[: text.rindex(last)].count("\n") + 1)


@pytest.mark.parametrize("begins", [BEGINS, IN_PYTHON])
def test_another_trial_speaks_against_an_end(watch: Watch, begins: str) -> None:
    assert _began(f"{begins}{FAILED}{begins}toys\n", "KeyError")
    assert not _began(f"{begins}{FAILED}toys\n", "KeyError")
    assert watch(f"{begins}{FAILED}{begins}toys\n").verdict.state != "failed"
    assert watch(f"{begins}{FAILED}").verdict.state == "failed"


def test_trials_that_fail_alike_have_one_cause(watch: Watch) -> None:
    twice = f"{BEGINS}{FAILED}{BEGINS}{FAILED}{BEGINS}toys\n"
    assert not _began(twice, "KeyError")
    assert watch(twice).verdict.state == "failed"


def test_the_sweep_itself_may_stop_each_of_its_trials(watch: Watch) -> None:
    stopped = f"{BEGINS}{STOPS}{SIGNAL}"
    assert _began(f"{stopped}{stopped}{BEGINS}toys\n", "SignalException")
    assert watch(f"{stopped}{stopped}{BEGINS}toys\n").verdict.state != "failed"
