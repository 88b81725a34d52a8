"""What the scheduler says of an end, and what the log says: each combination has its verdict and decision.

The table stands in `scheduler_words.tsv`. A specific word (preempted, out of memory, a failed node) wins over
lines that only waited and over vague ones. So does a time limit. They win over what the scheduler's own
signals make a process or a shell print, too. A cause in the log wins over the word.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.job_replay import replay
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.scheduler_record import from_exit_code, from_text
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.agents.schedulers.base import StartState
from midwatch.rules.detectors.limits import WatchLimits
from unit.agents.detect.diagnosis.test_cascades import frames

Judge = Callable[[StartState, str], Replayed]

TABLE = Path(__file__).with_name("scheduler_words.tsv")
STEPS = "".join(
    f" iteration {n:8d}/ 900 | consumed samples: 64 | elapsed time per iteration (ms): 95.0 | "
    "lm loss: 2.1 |\n"
    for n in (1, 2, 3)
)
WAITING = (
    "[rank2]:[E302 11:52:40.1 ProcessGroupNCCL.cpp:757] [Rank 2] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=4188, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=30000) ran for "
    "30041 milliseconds before timing out.\n"
)
VAGUE = "RuntimeError: CUDA error: device not ready\n"
ASKED = (
    "W0302 11:52:40.118000 77 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, "
    "shutting down workers\n"
)
KILLED = "/var/spool/slurmd/job77/slurm_script: line 20:    78 Killed                  python train.py\n"
LINK = (
    "n4:310:402 [1] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.8.0.4<41200> "
    "with status=12 opcode=0 len=0 vendor err 129\n"
)
CONTRADICTS = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 79.10 GiB\n"
)
_NODE = "srun: error: Node failure on n7\n"
_KILLED = "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=77.0.\n"
_LIMIT = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-03-02T12:00:01 DUE TO TIME LIMIT ***\n"
_CANCELLED = "slurmstepd: error: *** JOB 77 ON n3 CANCELLED AT 2026-03-02T12:00:01 ***\n"
_RAISED = frames("KeyError: 'x'") + "\n"
AGREES = {
    "NODE_FAIL": _NODE,
    "BOOT_FAIL": "srun: error: Something is wrong with the boot of the nodes.\n",
    "LAUNCH_FAILED": _NODE,
    "PREEMPTED": _CANCELLED.replace("01 ***", "01 DUE TO PREEMPTION ***"),
    "OUT_OF_MEMORY": _KILLED,
    "TIMEOUT": _LIMIT,
    "DEADLINE": _LIMIT,
    "CANCELLED by 1000": _CANCELLED,
    "CANCELLED by 0": _CANCELLED,
    "REVOKED": _CANCELLED,
    "REQUEUED": _CANCELLED.replace("01 ***", "01 DUE TO JOB REQUEUE ***"),
    "dependency": _CANCELLED,
    "unknown end": _RAISED,
    "134": "Fatal Python error: Aborted\n",
    "139": "Fatal Python error: Segmentation fault\n",
    "139:0": "Fatal Python error: Segmentation fault\n",
    "137": _KILLED,
    "143": _CANCELLED,
    "127": "run.sh: line 12: torchrun: command not found\n",
    "1": _RAISED,
    "2": "train.py: error: unrecognized arguments: --toy\n",
    "RAY FAILED 1": _RAISED,
    "RAY STOPPED": _RAISED,
    "RAY FAILED": _RAISED,
}
_RAY_FAILED = {"status": "FAILED", "message": "Job entrypoint command failed"}
_RECORDS = {
    "RAY FAILED 1": json.dumps({**_RAY_FAILED, "driver_exit_code": 1}),
    "RAY FAILED 137": json.dumps({**_RAY_FAILED, "driver_exit_code": 137}),
    "RAY FAILED": json.dumps({**_RAY_FAILED, "driver_exit_code": None, "message": "its node died"}),
    "RAY STOPPED": json.dumps({"status": "STOPPED"}),
    "FAILED 139:0": "JobID|State|ExitCode\n77|FAILED|139:0\n",
    "dependency": "JobId=77 JobName=toy\n   JobState=CANCELLED Reason=DependencyNeverSatisfied\n",
}


def state_of(word: str) -> StartState:
    if word in _RECORDS:
        return from_text(_RECORDS[word], word)
    if word == "unknown end":
        return StartState("ended", "ended")
    kind, _, code = word.partition(" ")
    if kind == "exit":
        return from_exit_code(int(code))
    if kind == "FAILED":
        number = int(code)
        status = f"{number}:0" if number < 128 else f"0:{number - 128}"
        return from_text(f"JobID|State|ExitCode\n77|FAILED|{status}\n", word)
    return from_text(f"JobID|State|ExitCode\n77|{word}|0:1\n77.batch|FAILED|9:0\n", word)


def cells() -> list[tuple[str, str, str]]:
    head, *rows = (line.split("\t") for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    return [(row[0], kind, cell) for row in rows for kind, cell in zip(head[1:], row[1:], strict=True)]


@pytest.fixture(scope="module")
def judge() -> Judge:
    watched = watched_rules(("default",), scan=False)
    policy = load_policy("verdict")
    book = Rulebook({policy.name: policy}, sign=lambda command: command, default_policy=policy.name)

    def judged(end: StartState, log: str) -> Replayed:
        files = [LogFile("log", log.encode(), 0.0)]
        return replay("replay:file/log", files, watched, book, WatchLimits(), end=end)

    return judged


@pytest.mark.parametrize(
    ("word", "evidence", "expected"), [pytest.param(*cell, id=f"{cell[0]}-{cell[1]}") for cell in cells()]
)
def test_each_word_with_each_evidence(judge: Judge, word: str, evidence: str, expected: str) -> None:
    agrees = AGREES.get(word) or AGREES[word.rpartition(" ")[2]]
    lines = {"none": "", "waiting": WAITING, "vague": VAGUE, "agrees": agrees, "contradicts": CONTRADICTS}
    lines |= {"asked to end": ASKED, "killed": KILLED, "link": LINK}
    done = judge(state_of(word), STEPS + lines[evidence])
    transience = {True: "T", False: "L", None: "?"}[done.verdict.transient]
    assert f"{done.verdict.error_type}/{transience}/{done.decision.action}" == expected


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: *** STEP 77.0 ON n3 CANCELLED AT 2026-03-02T11:52:45 ***\n",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 78 got signal: 15\n",
        "srun: error: n3: task 7: Killed\n",
        "RuntimeError: DataLoader worker (pid 79) is killed by signal: Killed. \n",
        "failed (exitcode: -9) local_rank: 3 (pid: 79) of binary: python3\n",
        "/var/spool/slurmd/job77/slurm_script: line 20:    78 Bus error               python train.py\n",
    ],
)
def test_what_the_schedulers_kill_makes_others_print_hides_no_fact(judge: Judge, line: str) -> None:
    failed, limit, memory = (
        judge(state_of(word), STEPS + line) for word in ("NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY")
    )
    assert (failed.verdict.error_type, failed.decision.action) == ("slurm_failure", "restart")
    assert (limit.verdict.error_type, limit.decision.action) == ("slurm_failure", "hold")
    assert memory.verdict.error_type == "host_oom"
    assert memory.decision.action in ("hold", "stop")


def test_a_job_that_completed_is_healthy_and_needs_nothing(judge: Judge) -> None:
    done = judge(from_exit_code(0), "loading\n")
    assert (done.verdict.state, done.decision.action) == ("healthy", "none")


@pytest.mark.parametrize(
    ("word", "error_type"),
    [
        ("exit 130", "user_interrupt"),
        ("exit 132", "native_crash"),
        ("FAILED 135", "native_crash"),
        ("FAILED 136", "native_crash"),
        ("exit 129", "unknown"),
        ("exit 3", "unknown"),
    ],
)
def test_a_signal_alone_may_tell_the_kind_and_a_person_decides(
    judge: Judge, word: str, error_type: str
) -> None:
    done = judge(state_of(word), STEPS)
    assert (done.verdict.error_type, done.verdict.transient) == (error_type, None)
    assert done.decision.action == "hold"
    assert judge(state_of(word), STEPS + WAITING).verdict.error_type == "nccl_timeout"


def test_an_exit_code_of_a_script_may_be_a_signal_too(judge: Judge) -> None:
    assert judge(from_text("JobID|State|ExitCode\n77|FAILED|135:0\n", ""), "").verdict.error_type == (
        "native_crash"
    )


def test_the_last_lines_tell_more_than_a_signal(judge: Judge) -> None:
    done = judge(state_of("exit 132"), STEPS + "ERROR the wheels of the toy came off\n")
    assert done.verdict.root_line == "ERROR the wheels of the toy came off"
    assert done.decision.action == "hold"
