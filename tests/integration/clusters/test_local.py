"""Jobs as real process groups: started once, outliving their starter, ended to the last process."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.drill import trainer
from midwatch.agents.executor.reconcile import LOCAL, Finish, PendingCommand
from midwatch.agents.schedulers.base import SchedulerJob, StartSpec, StartState
from midwatch.agents.schedulers.calls import CountingCaller, SystemCaller
from midwatch.agents.schedulers.local.effect_file import Record, create, prune, read
from midwatch.agents.schedulers.local.scheduler import LocalCluster
from midwatch.streams.host.process_table import boot_id, group_members, start_ticks
from midwatch.streams.records.identity import local_incarnation
from processes import wait_for, wakes, written
from slurm_lab.executor import Shell

GRACE = {"MIDWATCH_GRACE_S": "0.5"}


@pytest.fixture
def key() -> str:
    return secrets.token_hex(16)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    made = LocalCluster("here", tmp_path / "state", SystemCaller())
    yield made
    for job in made.sweep().jobs:
        if not job.state.over:
            made.cancel(job.incarnation, force=True)


def sh(tmp_path: Path, text: str, **environment: str) -> StartSpec:
    return StartSpec(("sh", "-c", text), str(tmp_path), GRACE | environment)


def ended(cluster: LocalCluster, key: str) -> StartState:
    wait_for(lambda: cluster.find(key) and cluster.find(key)[0].state.over, "the end of the job")
    return cluster.find(key)[0].state


def started(cluster: LocalCluster, spec: StartSpec, key: str) -> SchedulerJob:
    assert cluster.submit_held(spec, key).result == "done"
    (job,) = cluster.find(key)
    return job


def test_many_starters_with_one_key_make_one_start(cluster: LocalCluster, tmp_path: Path, key: str) -> None:
    spec = sh(tmp_path, "echo started >> marks; sleep 60")
    crew = [threading.Thread(target=cluster.submit_held, args=(spec, key)) for _ in range(6)]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    marks = tmp_path / "marks"
    wait_for(lambda: written(marks), "the script's first act")
    (job,) = cluster.find(key)
    assert job.state.kind == "running"
    assert job.incarnation == local_incarnation(int(job.native_id), start_ticks(int(job.native_id)) or 0)
    cluster.cancel(job.incarnation, key)
    ended(cluster, key)
    assert cluster.submit_held(spec, key).result == "done"
    assert marks.read_text() == "started\n"
    assert len(cluster.sweep().jobs) == 1


ENDS = {
    "exit 0": ("COMPLETED", "success", 0, None),
    "exit 3": ("FAILED", "crash", 3, None),
    "kill -9 $$": ("FAILED", "crash", None, 9),
    "kill -ABRT $$": ("FAILED", "crash", None, 6),
}


@pytest.mark.parametrize("text", list(ENDS))
def test_how_a_job_ended(cluster: LocalCluster, tmp_path: Path, key: str, text: str) -> None:
    cluster.submit_held(sh(tmp_path, text), key)
    state = ended(cluster, key)
    assert (state.word, state.mode, state.exit_code, state.signal) == ENDS[text]


def test_a_script_that_is_not_there_says_so(cluster: LocalCluster, tmp_path: Path, key: str) -> None:
    cluster.submit_held(StartSpec(("./nothing",), str(tmp_path)), key)
    state = ended(cluster, key)
    assert (state.exit_code, state.reason) == (127, "./nothing was not found")
    assert cluster.submit_held(StartSpec(("true",), str(tmp_path / "nowhere")), "b" * 32).result == "refused"


def test_while_a_job_runs_its_shim_hardly_takes_a_core(
    cluster: LocalCluster, tmp_path: Path, key: str
) -> None:
    job = started(cluster, sh(tmp_path, "echo > began; sleep 1.5; echo > ended; sleep 60"), key)
    wait_for((tmp_path / "began").exists, "the script's first act")
    before = wakes(int(job.native_id))
    wait_for((tmp_path / "ended").exists, "one and a half seconds")
    assert wakes(int(job.native_id)) - before < 40


def test_a_job_outlives_its_starter_by_kill_9(cluster: LocalCluster, key: str) -> None:
    code = (
        "import signal, sys; from pathlib import Path;"
        "from midwatch.agents.schedulers.local.scheduler import *;"
        "from midwatch.agents.schedulers.calls import SystemCaller;"
        "c = LocalCluster('here', Path(sys.argv[1]), SystemCaller());"
        # It only stays alive to be killed.
        "c.submit_held(StartSpec(('sleep', '60'), '/'), sys.argv[2]); print('up', flush=True); signal.pause()"
    )
    argv = [sys.executable, "-c", code, str(cluster.directory), key]
    starter = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
    assert starter.stdout is not None
    assert starter.stdout.readline() == b"up\n"
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()
    (job,) = cluster.find(key)
    assert job.state.kind == "running"
    assert cluster.cancel(job.incarnation, key).result == "done"
    assert ended(cluster, key).word == "CANCELLED"


def test_cancel_ends_the_whole_group_even_where_sigterm_is_ignored(
    cluster: LocalCluster, tmp_path: Path, key: str
) -> None:
    stubborn = "trap '' TERM; (trap '' TERM; sleep 60) & echo up > up; sleep 60; sleep 60"
    job = started(cluster, sh(tmp_path, stubborn), key)
    wait_for((tmp_path / "up").exists, "the script")
    group = int(job.native_id)
    assert len(group_members(group)) >= 3
    cluster.cancel(job.incarnation, key)
    state = ended(cluster, key)
    assert (state.word, state.signal, state.by_person) == ("CANCELLED", 9, "somebody")
    wait_for(lambda: not group_members(group), "the end of the group")


def test_a_job_that_saves_on_sigterm_and_ends_with_0_is_cancelled_all_the_same(
    cluster: LocalCluster, tmp_path: Path, key: str
) -> None:
    job = started(
        cluster,
        sh(tmp_path, "trap 'echo saved > saved; exit 0' TERM; echo > up; while :; do sleep 0.05; done"),
        key,
    )
    wait_for((tmp_path / "up").exists, "the script")
    cluster.cancel(job.incarnation, key)
    assert ended(cluster, key).word == "CANCELLED"
    assert (tmp_path / "saved").exists()


def test_what_a_script_leaves_behind_does_not_outlive_it(
    cluster: LocalCluster, tmp_path: Path, key: str
) -> None:
    job = started(cluster, sh(tmp_path, "sleep 60 & exit 0"), key)
    assert ended(cluster, key).word == "COMPLETED"
    wait_for(lambda: not group_members(int(job.native_id)), "the end of what was left")


def test_a_killed_shim_leaves_a_running_job_that_can_still_be_ended(
    cluster: LocalCluster, tmp_path: Path, key: str
) -> None:
    job = started(cluster, sh(tmp_path, "echo > up; sleep 60"), key)
    wait_for((tmp_path / "up").exists, "the script")
    os.kill(int(job.native_id), signal.SIGKILL)
    wait_for(lambda: start_ticks(int(job.native_id)) is None, "the shim's end")
    assert cluster.state(job.incarnation).kind == "running"
    assert (
        cluster.submit_held(sh(tmp_path, "true"), secrets.token_hex(16), after=job.native_id).result
        == "unclear"
    )
    cluster.cancel(job.incarnation, key)
    state = ended(cluster, key)
    assert (state.word, state.mode, state.exit_code) == ("LOST", "ended", None)


def test_a_pid_that_came_again_is_neither_seen_nor_touched(cluster: LocalCluster, key: str) -> None:
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        ticks = start_ticks(bystander.pid)
        assert ticks is not None
        record = Record(key, bystander.pid, ticks - 1, boot_id(), "root", ("x",), "/", 0.0)
        create(cluster.directory, record)
        incarnation = local_incarnation(bystander.pid, ticks - 1)
        assert cluster.state(incarnation).word == "LOST"
        assert cluster.cancel(incarnation, key, force=True).result == "refused"
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_start_of_an_earlier_boot_is_over(cluster: LocalCluster, key: str) -> None:
    own = start_ticks(os.getpid()) or 0
    create(cluster.directory, Record(key, os.getpid(), own, "another-boot", "root", ("x",), "/", 0.0))
    state = cluster.find(key)[0].state
    assert (state.kind, state.reason) == ("ended", "the machine was restarted; its exit code is unknown")


def test_jobs_that_others_started_are_known_by_pid_and_start_time(cluster: LocalCluster) -> None:
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    incarnation = local_incarnation(other.pid, start_ticks(other.pid) or 0)
    assert cluster.state(incarnation).kind == "running"
    assert cluster.cancel(incarnation, "a" * 32).result == "refused"
    assert cluster.cancel(incarnation).result == "done"
    assert other.wait() == -signal.SIGTERM
    assert cluster.state(incarnation).word == "GONE"


def test_only_what_the_spec_says_reaches_the_job(
    cluster: LocalCluster, tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDWATCH_KAFKA_PASSWORD", "leaked")
    cluster.submit_held(sh(tmp_path, "env; pwd; exit 0", MIDWATCH_JOB="here:root/run"), key)
    ended(cluster, key)
    text = (cluster.directory / "output" / f"{key}.log").read_text()
    assert "MIDWATCH_JOB=here:root/run" in text
    assert str(tmp_path) in text.splitlines()
    assert "leaked" not in text


def test_looking_is_no_act(tmp_path: Path, key: str) -> None:
    caller = CountingCaller(SystemCaller())
    cluster = LocalCluster("here", tmp_path / "state", caller)
    cluster.sweep()
    cluster.find(key)
    cluster.epoch()
    cluster.state("local:1:1")
    assert caller.acts == {}
    cluster.submit_held(sh(tmp_path, "exit 0"), key)
    assert caller.acts == {"spawn": 1}


@pytest.mark.capability("S002-05")
def test_a_hung_training_is_ended_and_resumed_once_from_its_checkpoint(
    cluster: LocalCluster, tmp_path: Path, key: str
) -> None:
    place = tmp_path / "checkpoints"
    argv = [sys.executable, str(trainer.__file__), "--checkpoint-dir", str(place), "--ranks=4"]
    argv += ["--iterations=20", "--save-every=5", "--iteration-ms=2", "--fault=hang@13:1"]
    spec = StartSpec(tuple(argv), str(tmp_path))
    first = secrets.token_hex(16)
    job = started(cluster, spec, first)

    def ledger(event: str) -> list[dict[str, object]]:
        path = place / "ledger.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [record for record in map(json.loads, lines) if record["event"] == event]

    wait_for(lambda: ledger("fault"), "the hang")
    shell = Shell(cluster, PendingCommand(job.incarnation, key), spec, LOCAL, tmp_path / "memory.json")
    done = shell.work()
    assert isinstance(done, Finish)
    assert done.result == "done"
    assert ended(cluster, key).word == "COMPLETED"
    assert ended(cluster, first).word == "CANCELLED"
    assert [start["first_step"] for start in ledger("start")] == [1, 11]
    assert ledger("overlap") == []
    assert [record["step"] for record in ledger("done")] == [20]
    replayed = replace(shell, file=tmp_path / "a lost memory.json").work()
    assert isinstance(replayed, Finish)
    assert len(ledger("start")) == 2


def test_the_record_is_on_disk_before_the_script_starts(
    cluster: LocalCluster, tmp_path: Path, key: str
) -> None:
    record_file = cluster.directory / "effects" / key
    cluster.submit_held(sh(tmp_path, f"cp {record_file} seen"), key)
    ended(cluster, key)
    seen = json.loads((tmp_path / "seen").read_text())
    record = read(cluster.directory, key)
    assert record is not None
    assert (seen["pid"], seen["code"], record.code) == (record.pid, None, 0)


def test_starts_that_ended_long_ago_are_not_looked_at_for_ever(cluster: LocalCluster) -> None:
    keys = [secrets.token_hex(16) for _ in range(3)]
    for each, ended_at in zip(keys, (100.0, 300.0, None), strict=True):
        record = Record(each, 1, 7, "earlier boot", "ann", ("train",), "/", 50.0, ended_at=ended_at)
        create(cluster.directory, replace(record, code=None if ended_at is None else 0))
    assert prune(cluster.directory, 200.0) == 1
    assert {job.effect_key for job in cluster.sweep().jobs} == {*keys[1:]}
    assert cluster.find(keys[0]) == ()
    assert prune(cluster.directory, 200.0) == 0
