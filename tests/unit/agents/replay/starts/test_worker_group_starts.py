"""An agent of torchrun starts its workers anew in one file: the last of these starts counts."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.starts.worker_group_starts import behind_restarts
from unit.agents.conftest import Watch
from unit.agents.replay.starts.test_appended_starts import OUT_OF_MEMORY, RAISED, steps

AGENT = "I0302 11:52:{:02}.118000 7 torch/distributed/elastic/agent/server/api.py:{}] [default] "
FAILED = (
    "E0302 11:52:40.118000 7 torch/distributed/elastic/multiprocessing/api.py:9] failed (exitcode: 1) "
    "local_rank: 3 (pid: 33) of binary: /toy/python\n"
)
AGAIN = AGENT.format(41, 8) + "Worker group FAILED. 2/3 attempts left; will restart worker group\n"
GROWN = AGENT.format(41, 8) + "Detected 1 new nodes from group_rank=0; will restart worker group\n"
MET = AGENT.format(42, 8) + "Rendezvous complete for workers. Result:\n  restart_count={}\n  group_rank=0\n"
STARTS = AGENT.format(43, 8) + "Starting worker group\n"
LATE = (
    "[rank0]:[E302 12:40:00.114 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600054 "
    "milliseconds before timing out.\n"
)
TURNS = "".join(f"turn {n} |w|={n / 7:.3f}\n" for n in range(9))
FIRST = MET.format(0) + STARTS + steps(1, 80) + RAISED + FAILED


@pytest.mark.parametrize("word", [AGAIN, GROWN, MET.format(1), AGAIN + MET.format(1)])
def test_the_workers_that_an_agent_starts_anew_are_the_start_that_counts(watch: Watch, word: str) -> None:
    done = watch(FIRST + word + STARTS + steps(51, 69) + LATE)
    assert (done.verdict.error_type, done.decision.action) == ("nccl_timeout", "restart")
    assert [(each.first, each.verdict.error_type) for each in done.earlier] == [(1, "exception")]
    done = watch(FIRST + word + STARTS + steps(51, 69))
    assert (done.verdict.state, len(done.earlier)) == ("healthy", 1)


HELLO = "the toy begins at step {}\n"
GAVE_UP = "toy.elastic.errors.ChildFailedError: \n"


@pytest.mark.parametrize(
    ("behind", "failed", "earlier"),
    [
        (HELLO.format(50) + TURNS, False, 1),
        (TURNS, True, 0),  # what other workers held back
        (HELLO.format(50) + TURNS + GAVE_UP, True, 0),
        ("", True, 0),
    ],
)
def test_behind_an_agent_that_did_not_give_up_a_start_s_own_first_line_shows_the_next_one(
    watch: Watch, behind: str, failed: bool, earlier: int
) -> None:
    done = watch(HELLO.format(0) + TURNS + RAISED + FAILED + behind)
    assert (done.verdict.state == "failed", len(done.earlier)) == (failed, earlier)


def test_what_a_rank_prints_as_it_leaves_is_no_start_s_first_line(watch: Watch) -> None:
    leaves = (
        "[rank0]:[W302 12:40:00.118 ProcessGroupNCCL.cpp:77] Warning: WARNING: process group has NOT been "
        "destroyed before we destruct ProcessGroupNCCL.\n"
    )
    done = watch(leaves + RAISED + FAILED + leaves.replace("118", "177"))
    assert (done.verdict.error_type, done.earlier) == ("exception", ())
    assert done.verdict.root_line == RAISED.splitlines()[-1]


def test_a_start_that_resumes_further_on_is_one_too(watch: Watch) -> None:
    done = watch(FIRST + AGAIN + STARTS + steps(81, 81) + OUT_OF_MEMORY)
    assert (done.verdict.error_type, len(done.earlier)) == ("oom", 1)


def test_each_restart_is_told(watch: Watch) -> None:
    other = STARTS + steps(51, 60) + LATE + AGAIN
    done = watch(FIRST + AGAIN + other + STARTS + steps(51, 60) + OUT_OF_MEMORY)
    assert done.verdict.error_type == "oom"
    assert [each.verdict.error_type for each in done.earlier] == ["exception", "nccl_timeout"]


def test_workers_that_fail_before_a_step_are_a_start(watch: Watch) -> None:
    assert watch(FIRST + AGAIN + STARTS + OUT_OF_MEMORY).verdict.error_type == "oom"


def test_agents_of_several_nodes_tell_of_one_restart(watch: Watch) -> None:
    nodes = [AGAIN, AGAIN, STARTS, AGAIN, STARTS, STARTS]
    done = watch(FIRST + "".join(nodes) + steps(51, 69) + LATE)
    assert [each.verdict.error_type for each in done.earlier] == ["exception"]
    assert done.verdict.error_type == "nccl_timeout"


def test_agents_of_many_nodes_hide_no_later_restart(watch: Watch) -> None:
    wound = "the toys are wound up once more\n" * 9000
    nodes = (MET.format(0) + STARTS) * 64
    again, next_workers = AGAIN * 64, (MET.format(1) + STARTS) * 64
    log = nodes + steps(1, 80) + RAISED + again + wound + next_workers + steps(51, 60) + OUT_OF_MEMORY
    done = watch(log + again + wound + next_workers + steps(51, 69))
    assert done.verdict.state == "healthy"
    assert [each.verdict.error_type for each in done.earlier] == ["exception", "oom"]


def test_what_stopped_workers_print_before_the_next_start_is_of_theirs(watch: Watch) -> None:
    done = watch(FIRST + AGAIN + OUT_OF_MEMORY + STARTS + steps(51, 69))
    assert (done.verdict.state, len(done.earlier)) == ("healthy", 1)


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(LATE, id="no restart"),
        pytest.param(STARTS + steps(51, 69) + LATE, id="the first start of another node"),
        pytest.param(MET.format(0) + STARTS + LATE, id="a first rendezvous"),
        pytest.param(AGAIN + LATE, id="no new workers"),
        pytest.param(AGAIN + STARTS, id="nothing is known of the new workers"),
        pytest.param("see '" + AGAIN.strip() + "'\n" + STARTS + LATE, id="words cited"),
    ],
)
def test_without_a_restart_the_first_failure_stays(watch: Watch, behind: str) -> None:
    done = watch(FIRST + behind)
    assert (done.verdict.error_type, done.earlier) == ("exception", ())


def test_the_place_is_that_of_the_new_workers() -> None:
    lines = (FIRST + AGAIN + MET.format(1) + STARTS + steps(51, 60)).encode().splitlines()
    found = list(behind_restarts((0, number, line) for number, line in enumerate(lines, 1)))
    assert [lines[number - 1] + b"\n" for _, number in found] == [STARTS.encode()]
    assert found[0][1] > FIRST.count("\n")
