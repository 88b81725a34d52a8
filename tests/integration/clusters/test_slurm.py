"""The driver and the reconciler on a real SLURM, with its real delays, crashes and half answers."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.drill import trainer
from midwatch.agents.executor.reconcile import SLURM, Cancel, Finish, PendingCommand, Release, Step, Submit
from midwatch.agents.schedulers.base import ClusterUnreachable, StartSpec, StartState
from midwatch.agents.schedulers.calls import CountingCaller, SystemCaller
from midwatch.agents.schedulers.slurm.scheduler import SlurmCluster
from processes import written
from slurm_lab import lab as slurm_lab
from slurm_lab.executor import Shell
from slurm_lab.fixture import booted, running
from slurm_lab.lab import Lab
from slurm_lab.packages import ACCOUNTING, CONTROLLER

pytestmark = pytest.mark.slurm

QUICK = replace(SLURM, settle=12, durable=1.0, boot_settle=2, confirm=1.0, absent=2)


@pytest.fixture
def key() -> str:
    return secrets.token_hex(16)


def driver(lab: Lab) -> SlurmCluster:
    return SlurmCluster("lab", SystemCaller(), settings={"SLURM_CONF": str(lab.layout.conf)})


def script(lab: Lab, text: str) -> str:
    path = lab.layout.directory / f"train-{time.monotonic_ns()}.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    return str(path)


def spec(lab: Lab, text: str, *options: str, **environment: str) -> StartSpec:
    output = f"--output={lab.layout.directory}/log/job-%j.out"
    argv = ("sbatch", output, *options, script(lab, text))
    return StartSpec(argv, str(lab.layout.directory), environment)


def carrying(lab: Lab, key: str) -> dict[str, str]:
    """Id and state of all jobs with the key."""
    return {row.id: row.state for row in lab.queue() if row.comment.startswith(f"mw:{key}")}


@pytest.mark.capability("C-6")
def test_a_held_job_runs_only_when_released_and_is_found_by_its_key(slurm: Lab, key: str) -> None:
    cluster = driver(slurm)
    wanted = spec(slurm, "env; sleep 60", "--job-name=any,name|it likes", MIDWATCH_JOB="lab:root/x")
    assert cluster.find(key) == ()
    hint = cluster.submit_held(wanted, key)
    (job,) = cluster.find(key)
    assert (hint.result, hint.text) == ("done", job.native_id)
    assert (job.state.kind, job.state.reason) == ("held", "JobHeldUser")
    assert cluster.release(job.incarnation, "f" * 32).result == "refused"
    assert cluster.release(job.incarnation, key).result == "done"
    slurm.wait_state(job.native_id, "RUNNING")
    assert cluster.release(job.incarnation, key).result == "done"
    out = slurm.layout.directory / "log" / f"job-{job.native_id}.out"
    slurm.wait(lambda: out.exists() and "MIDWATCH_JOB=lab:root/x" in out.read_text(), "the job's environment")
    (running,) = cluster.find(key)
    assert (running.state.kind, running.incarnation) == ("running", f"slurm:{job.native_id}:0")


def test_nothing_of_our_own_environment_steers_sbatch_or_reaches_the_job(
    slurm: Lab, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "no-such-partition")
    monkeypatch.setenv("SLURM_JOB_NAME", "leaked")
    monkeypatch.setenv("MIDWATCH_KAFKA_PASSWORD", "leaked")
    cluster = driver(slurm)
    assert cluster.submit_held(spec(slurm, "env"), key).result == "done"
    (job,) = cluster.find(key)
    cluster.release(job.incarnation, key)
    slurm.wait_state(job.native_id, "COMPLETED")
    out = slurm.layout.directory / "log" / f"job-{job.native_id}.out"
    slurm.wait(lambda: "SLURM_JOB_ID" in out.read_text(), "the job's output")
    assert "leaked" not in out.read_text()


ENDS = {
    "exit 0": ("COMPLETED", "success", "", 0, None),
    "exit 3": ("FAILED", "crash", "slurm_failure", 3, None),
    "kill -9 $$": ("FAILED", "crash", "slurm_failure", 0, 9),
    "sh -c 'kill -9 $$'": ("FAILED", "crash", "slurm_failure", 137, None),
}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("exit 0", marks=pytest.mark.capability("S001-37")),
        pytest.param("exit 3", marks=pytest.mark.capability("S001-36")),
        "kill -9 $$",
        "sh -c 'kill -9 $$'",
    ],
)
def test_how_a_job_ended(slurm: Lab, text: str) -> None:
    job = slurm.submit(script=text)
    word, mode, error_type, code, number = ENDS[text]
    slurm.wait_state(job, word)
    state = driver(slurm).state(f"slurm:{job}:0")
    assert (state.kind, state.word, state.mode, state.error_type) == ("ended", word, mode, error_type)
    assert (state.exit_code, state.signal) == (code, number)


@pytest.mark.capability("S001-35", "S001-64")
def test_a_cancelled_job_says_that_somebody_did_it(slurm: Lab) -> None:
    job = slurm.submit(script="sleep 60")
    slurm.wait_state(job, "RUNNING")
    slurm.run("scancel", job)
    slurm.wait_state(job, "CANCELLED")
    state = driver(slurm).state(f"slurm:{job}:0")
    assert (state.mode, state.error_type, state.by_person) == ("ended", "cancelled", "somebody")


def test_a_job_past_its_time_limit_says_so(slurm: Lab) -> None:
    began = slurm.layout.directory / "began"
    job = slurm.submit("--time=10", script=f"touch {began}; sleep 600")
    # SLURM puts a job's end off once more when its nodes are configured (job_config_fini of slurmctld).
    slurm.wait(began.exists, "the script runs")
    slurm.run("scontrol", "update", f"jobid={job}", "endtime=now")
    slurm.wait_state(job, "TIMEOUT", seconds=90)
    state = driver(slurm).state(f"slurm:{job}:0")
    assert (state.kind, state.mode, state.error_type) == ("ended", "timeout", "slurm_failure")
    assert state.reason == "TimeLimit"


def test_a_node_that_fails_fails_the_job(slurm: Lab) -> None:
    job = slurm.submit("--no-requeue", "--nodelist=n1", script="sleep 60")
    slurm.wait_state(job, "RUNNING")
    slurm.run("scontrol", "update", "nodename=n1", "state=down", "reason=drill")
    slurm.wait_state(job, "NODE_FAIL")
    state = driver(slurm).state(f"slurm:{job}:0")
    assert (state.kind, state.mode, state.error_type) == ("ended", "crash", "slurm_failure")


def test_a_requeue_is_another_start_of_the_same_job(slurm: Lab) -> None:
    cluster = driver(slurm)
    job = slurm.submit("--requeue", script="sleep 60")
    slurm.wait_state(job, "RUNNING")
    slurm.run("scontrol", "requeue", job)
    slurm.wait(
        lambda: job in [j.native_id for j in cluster.sweep().jobs if j.incarnation.endswith(":1")], "it"
    )
    first = cluster.state(f"slurm:{job}:0")
    assert (first.kind, first.word) == ("ended", "REQUEUED")
    assert cluster.cancel(f"slurm:{job}:0").result == "refused"
    assert cluster.state(f"slurm:{job}:1").kind in ("queued", "running", "ending")


@pytest.mark.capability("X-50")
def test_an_array_task_is_started_again_alone(slurm: Lab, key: str) -> None:
    cluster = driver(slurm)
    array = slurm.submit("--array=3,5", script="sleep 60")
    slurm.wait_state(f"{array}_3", "RUNNING")
    assert cluster.state(f"slurm:{array}_3:0").kind == "running"
    slurm.run("scancel", f"{array}_3")
    cluster.submit_held(spec(slurm, "sleep 60", "--array=3,5"), key, after=f"{array}_3")
    (job,) = cluster.find(key)
    assert job.native_id.endswith("_3")
    assert cluster.state(f"slurm:{array}_5:0").kind == "running"


def test_what_a_person_cancels_of_an_array_before_it_runs_is_cancelled(slurm: Lab, key: str) -> None:
    cluster = driver(slurm)
    array = slurm.submit("--array=3,5%1", script="sleep 60")
    slurm.wait_state(f"{array}_3", "RUNNING")
    cluster.submit_held(spec(slurm, "sleep 60", "--array=3,5"), key, after=f"{array}_3")
    (held,) = cluster.find(key)
    slurm.run("scancel", held.native_id)
    slurm.wait(lambda: cluster.find(key)[0].state.over, "it is cancelled")
    (cancelled,) = cluster.find(key)
    assert (cancelled.native_id, cancelled.state.word) == (held.native_id, "CANCELLED")
    assert cluster.state(held.incarnation).word == "CANCELLED"


def test_a_person_may_cancel_the_restart_of_a_task_that_we_hold_and_it_stays_so(
    slurm: Lab, key: str, shell: Make
) -> None:
    array = slurm.submit("--array=3,5", script="sleep 1; exit 1")
    slurm.wait_state(f"{array}_3", "FAILED")
    worker = shell(f"{array}_3", spec(slurm, "true", "--array=3,5"))
    worker.work(until=was(Submit))
    worker.one_pass()
    (held,) = worker.cluster.find(key)
    slurm.run("scancel", held.native_id)
    end = worker.work()
    assert isinstance(end, Finish)
    assert end.result == "failed"
    assert [row.id for row in slurm.queue() if key in row.comment] == [held.native_id.partition("_")[0]]


def test_an_unknown_job_is_absent_and_a_silent_scheduler_is_an_error(slurm: Lab, key: str) -> None:
    cluster = driver(slurm)
    assert cluster.state("slurm:4000000:0") == StartState("absent")
    slurm.stop_controller()
    with pytest.raises(ClusterUnreachable, match="gave no usable answer"):
        cluster.sweep()
    assert cluster.state("slurm:4000000:0").kind == "unknown"
    assert cluster.submit_held(spec(slurm, "true"), key).result == "unclear"


def test_a_final_refusal_is_told_from_a_failed_call(slurm: Lab, key: str) -> None:
    cluster = driver(slurm)
    hint = cluster.submit_held(spec(slurm, "true", "--partition=nix"), key)
    assert hint.result == "refused"
    assert "Invalid partition name" in hint.text
    assert cluster.submit_held(replace(spec(slurm, "true"), cwd="/nowhere"), key).result == "refused"


def test_looking_is_no_act(slurm: Lab, key: str) -> None:
    caller = CountingCaller(SystemCaller())
    cluster = SlurmCluster("lab", caller, settings={"SLURM_CONF": str(slurm.layout.conf)})
    cluster.sweep()
    cluster.find(key)
    cluster.epoch()
    cluster.state("slurm:1:0")
    assert sum(caller.acts.values()) == 0
    assert sum(caller.looks.values()) >= 4
    cluster.submit_held(spec(slurm, "true"), key)
    assert caller.acts == {"sbatch": 1}


@pytest.fixture
def shell(slurm: Lab, key: str, tmp_path: Path) -> Callable[[str, StartSpec], Shell]:
    def make(old: str, wanted: StartSpec) -> Shell:
        return Shell(
            driver(slurm), PendingCommand(f"slurm:{old}:0", key), wanted, QUICK, tmp_path / "memory.json"
        )

    return make


Make = Callable[[str, StartSpec], Shell]


class Killed(Exception):
    """The executor's end by kill -9."""


def was(kind: type[Step]) -> Callable[[Step], bool]:
    return lambda step: isinstance(step, kind)


def kill_at(kind: type[Step]) -> Callable[[Step], None]:
    def before(step: Step) -> None:
        if isinstance(step, kind):
            raise Killed(kind.__name__)

    return before


@pytest.mark.capability("S001-51")
def test_a_hung_job_is_ended_and_exactly_one_runs_after_it(slurm: Lab, key: str, shell: Make) -> None:
    old = slurm.submit(script="trap '' TERM; sleep 60 & wait; wait")
    slurm.wait_state(old, "RUNNING")
    marks = slurm.layout.directory / "marks"
    work = shell(old, spec(slurm, f"date +%s%N >> {marks}; sleep 60"))
    done = work.work()
    assert isinstance(done, Finish)
    assert done.result == "done"
    (new,) = carrying(slurm, key)
    assert slurm.state(old) == "CANCELLED"
    slurm.wait_state(new, "RUNNING")
    slurm.wait(lambda: written(marks), "the new job's first act")
    assert done.incarnation == f"slurm:{new}:0"
    again = shell(old, work.spec).work()
    assert isinstance(again, Finish)
    assert list(carrying(slurm, key)) == [new]
    assert len(marks.read_text().splitlines()) == 1


def test_a_frozen_controller_during_sbatch_gives_exactly_one_job(slurm: Lab, key: str, shell: Make) -> None:
    old = slurm.submit(script="exit 1")
    slurm.wait_state(old, "FAILED")
    work = shell(old, spec(slurm, "sleep 60"))
    work.before = lambda step: slurm.freeze_controller() if isinstance(step, Submit) else None
    work.work(until=was(Submit))
    assert work.steps[-1] in [step for step in work.steps if isinstance(step, Submit)]
    slurm.thaw_controller()
    work.before = lambda _: None
    done = work.work()
    assert isinstance(done, Finish)
    (running,) = [id_ for id_, state in carrying(slurm, key).items() if state != "CANCELLED"]
    assert done.incarnation == f"slurm:{running}:0"
    slurm.wait_state(running, "RUNNING")


@pytest.mark.parametrize("kept", [True, False], ids=["before the act", "after the act"])
def test_an_executor_killed_around_every_step_makes_one_job(
    slurm: Lab, key: str, shell: Make, kept: bool
) -> None:
    old = slurm.submit(script="sleep 60")
    slurm.wait_state(old, "RUNNING")
    wanted = spec(slurm, "sleep 60")
    killed_at: list[str] = []
    for kind in (Submit, Cancel, Release):
        victim = shell(old, wanted)
        if kept:
            victim.before = kill_at(kind)
        try:
            victim.work(until=was(kind))
            killed_at.append(kind.__name__)
        except Killed as death:
            killed_at.append(str(death))
    assert killed_at == ["Submit", "Cancel", "Release"]
    done = shell(old, wanted).work()
    assert isinstance(done, Finish)
    assert [state for state in carrying(slurm, key).values() if state != "CANCELLED"] in (
        ["RUNNING"],
        ["PENDING"],
    )
    assert len(carrying(slurm, key)) == 1


def test_a_controller_killed_after_sbatch_loses_the_job_and_it_is_made_again(
    slurm: Lab, key: str, shell: Make
) -> None:
    old = slurm.submit(script="exit 1")
    slurm.wait_state(old, "FAILED")
    time_to_save = slurm.layout.directory / "state"
    slurm.wait(lambda: any(time_to_save.glob("job_state*")), "the state of the old job on disk")
    slurm.stop_controller()
    slurm.start_controller()
    marks = slurm.layout.directory / "crash-marks"
    work = shell(old, spec(slurm, f"echo $SLURM_JOB_ID >> {marks}; sleep 60"))
    slurm.wait(lambda: slurm.run("squeue").returncode == 0, "the controller")
    work.work(until=was(Submit))
    slurm.kill_controller()
    slurm.start_controller()
    slurm.wait(lambda: slurm.run("squeue").returncode == 0, "the controller")
    done = work.work()
    assert isinstance(done, Finish)
    assert done.result == "done"
    assert len(carrying(slurm, key)) == 1
    slurm.wait(lambda: written(marks), "the new job's first act")
    assert len(marks.read_text().splitlines()) == 1


def test_a_person_may_cancel_what_we_hold_and_it_stays_so(slurm: Lab, key: str, shell: Make) -> None:
    old = slurm.submit(script="exit 1")
    slurm.wait_state(old, "FAILED")
    work = shell(old, spec(slurm, "sleep 60"))
    work.work(until=was(Submit))
    work.one_pass()
    (held,) = carrying(slurm, key)
    slurm.run("scancel", held)
    slurm.wait_state(held, "CANCELLED")
    done = work.work()
    assert isinstance(done, Finish)
    assert done.result == "failed"
    assert carrying(slurm, key) == {held: "CANCELLED"}


@pytest.mark.capability("S002-05")
def test_the_drill_dies_by_nccl_timeout_and_resumes_from_its_checkpoint(
    slurm: Lab, key: str, shell: Make
) -> None:
    """Eight ranks on three nodes by srun: the same training that the demo runs on one machine."""
    place = slurm.layout.directory / "checkpoints"
    argv = [sys.executable, str(trainer.__file__), "--checkpoint-dir", str(place), "--iterations=30"]
    argv += ["--iteration-ms=5", "--collective-timeout-ms=4000", "--fault=nccl@25:1"]
    command = "srun --kill-on-bad-exit=1 " + " ".join(argv)
    wanted = spec(slurm, command, "-N3", "-n8")
    sbatch = [*wanted.argv[:1], "--parsable", *wanted.argv[1:]]
    old = slurm.run(*sbatch).stdout.strip()
    slurm.wait_state(old, "FAILED", seconds=90)
    text = (slurm.layout.directory / "log" / f"job-{old}.out").read_text()
    assert text.count("Watchdog caught collective operation timeout") >= 7
    done = shell(old, wanted).work()
    assert isinstance(done, Finish)
    (new,) = carrying(slurm, key)
    slurm.wait_state(new, "COMPLETED", seconds=90)
    ledger = [json.loads(line) for line in (place / "ledger.jsonl").read_text().splitlines()]
    starts = [record for record in ledger if record["event"] == "start"]
    assert [(start["native_id"], start["first_step"]) for start in starts] == [(old, 1), (new, 21)]
    assert [record["event"] for record in ledger][-1] == "done"


@pytest.mark.capability("S001-64")
def test_accounting_knows_who_cancelled_and_what_left_the_queue() -> None:
    """In a lab of its own: it loses the controller's memory, and kills accounting."""
    with running(CONTROLLER | ACCOUNTING, accounting=True) as lab:
        _cancelled_and_left_the_queue(lab)


def _cancelled_and_left_the_queue(lab: Lab) -> None:
    cluster = driver(lab)
    job = lab.submit(script="sleep 60")
    lab.wait_state(job, "RUNNING")
    lab.run("scancel", job)
    lab.wait_state(job, "CANCELLED")
    lab.wait(lambda: cluster.state(f"slurm:{job}:0").by_person == "uid 0", "the accounting's word")
    failed = lab.submit(script="exit 3")
    lab.wait_state(failed, "FAILED")
    lab.wait(lambda: "FAILED" in lab.run("sacct", "-n", "-X", "-j", failed).stdout, "the accounting's row")
    lab.stop_controller()
    lab.run("rm", "-rf", str(lab.layout.directory / "state"))
    (lab.layout.directory / "state").mkdir()
    lab.start_controller()
    lab.wait(lambda: lab.run("squeue").returncode == 0, "the controller without its memory")
    assert lab.state(failed) == ""
    state = cluster.state(f"slurm:{failed}:0")
    assert (state.kind, state.word, state.exit_code) == ("ended", "FAILED", 3)
    lab.daemons["slurmdbd"].send_signal(signal.SIGKILL)
    lab.daemons["slurmdbd"].wait()
    assert cluster.state(f"slurm:{failed}:0").kind == "unknown"


def test_a_killed_test_process_leaves_no_daemon(tmp_path: Path) -> None:
    """The lab itself: kill -9 of whoever booted it takes the cluster with it."""
    code = (
        "import pathlib, signal, sys; from slurm_lab.lab import Lab; "
        # It only stays alive to be killed.
        "lab = Lab(pathlib.Path(sys.argv[1]), nodes=1); lab.boot(); print('up', flush=True); signal.pause()"
    )
    roots = ":".join(sys.path)
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "l")],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": roots},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    child.kill()
    child.wait()
    orphan = Lab(tmp_path / "l", nodes=1)
    orphan.wait(lambda: not orphan.orphans(), "the daemons' end")


@pytest.mark.usefixtures("slurm_cluster")  # where there is no SLURM, that one says so
def test_a_lab_whose_port_was_taken_meanwhile_comes_up_on_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("0.0.0.0", 0)) as squatter:  # noqa: S104 - where slurmd listens
        taken: int = squatter.getsockname()[1]
        real, chosen = slurm_lab.free_ports, [[*slurm_lab.free_ports(2), taken, 0] for _ in range(2)]
        monkeypatch.setattr(slurm_lab, "free_ports", lambda count: chosen.pop() if chosen else real(count))
        lab = booted(nodes=2)
        try:
            assert lab.layout.node_ports[-1] != taken
            assert lab.idle() == 2
        finally:
            lab.close()
