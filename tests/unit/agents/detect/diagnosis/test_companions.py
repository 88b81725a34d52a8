"""Processes beside the trainer: what they said themselves is the cause, that they are gone is not."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames

GONE = [
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    "RuntimeError: ZenFlow optimizer process failed to become ready (check the traceback above)",
    "RuntimeError: Worker process is not alive",
]


@pytest.mark.parametrize("gone", GONE)
def test_what_the_process_said_is_the_cause(watch: Watch, gone: str) -> None:
    said = frames("ValueError: the toy broke", prefix="(EngineCore pid=77) ERROR 03-02 11:52:40 [core.py:7] ")
    log = f"{said}\n{frames(gone)}\n"
    assert watch(log).verdict.root_line.endswith("ValueError: the toy broke")


@pytest.mark.parametrize("gone", GONE)
def test_that_it_is_gone_is_told_where_it_said_nothing(watch: Watch, gone: str) -> None:
    done = watch(frames(gone))
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", gone)
    assert done.decision.action == "hold"


def test_ranks_that_cut_the_model_differently_will_do_so_again(watch: Watch) -> None:
    done = watch(frames("RuntimeError: optimizer bucket plans differ across ranks", prefix="[rank3]: "))
    assert (done.verdict.error_type, done.decision.action) == ("config", "stop")


def test_a_rank_that_missed_a_restart_in_place_is_behind_it(watch: Watch) -> None:
    late = (
        "nvidia_resiliency_ext.inprocess.store.BarrierTimeout: ranks=[3] rendezvous_count=8 group_name='toy'"
    )
    error = "[rank1]: ValueError: the toy broke"
    assert watch(f"{frames(late)}\n").verdict.error_type == "distributed_timeout"
    assert watch(f"{frames(late)}\n{error}\n").verdict.root_line == error


BUSY = "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://api.wandb.ai/toys"


def test_a_tracker_that_ends_the_script_was_needed_and_one_in_a_thread_was_not(watch: Watch) -> None:
    ended = (
        'Traceback (most recent call last):\n  File "/toy/train.py", line 7, in <module>\n    main()\n'
        '  File "/lib/wandb/sdk/wandb_run.py", line 9, in toy\n    client.toy()\n'
    )
    done = watch(f"{ended}{BUSY}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("communication", BUSY)
    in_a_thread = ended.replace("/toy/train.py", "/lib/python3.11/threading.py").replace(
        "<module>", "_bootstrap_inner"
    )
    assert watch(f"Exception in thread Toy:\n{in_a_thread}{BUSY}\n").verdict.state != "failed"
