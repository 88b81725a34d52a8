"""Orders on a real SLURM: exactly one new job, from the right step; and none after a person's cancel."""

from __future__ import annotations

import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from executor_world import TRAINER, World, ledger, midwatch
from midwatch.agents.launch.job_spec import Started
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Heartbeat
from midwatch.streams.records.codec import decode_log
from midwatch.streams.records.effect_keys import effect_key
from midwatch.streams.records.identity import native_id
from processes import calls_of, wait_for
from slurm_lab.lab import Lab

pytestmark = [pytest.mark.integration, pytest.mark.slurm]

OVER = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")


@pytest.fixture
def accounted(
    slurm_with_accounting: Lab, tmp_path: Path, stack: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """The same on a SLURM whose accounting can be asked."""
    lab = slurm_with_accounting
    lab.clear()
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, lab.environment[name])
    made = World(
        tmp_path, stack, environment={name: lab.environment[name] for name in ("SLURM_CONF", "PATH")}
    )
    yield made
    made.close()


def submit(cluster: World, *faults: str, name: str = "train", armed: bool = True) -> tuple[Started, Path]:
    """`midwatch run -- sbatch train.sh` with options on the line and in the script.

    Each job has a name of its own: a second installation with the same names would find the first one's jobs.
    """
    name = f"{name}-{secrets.token_hex(4)}"
    checkpoints = cluster.directory / f"{name}-checkpoints"
    words = [sys.executable, str(TRAINER), "--checkpoint-dir", str(checkpoints), "--iterations", "30"]
    words += ["--iteration-ms", "20", "--collective-timeout-ms", "500", *faults]
    script = cluster.directory / f"{name}.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH --ntasks=2\n#SBATCH --comment=mine\n\n"
        f"echo started with $1\nsrun --kill-on-bad-exit=1 {' '.join(words)}\n"
    )
    started = cluster.run(
        "sbatch",
        f"--job-name={name}",
        str(script),
        "an-argument",
        job=name,
        armed=armed,
        checkpoint_directory=str(checkpoints),
    )
    return started, checkpoints


def ours(slurm: Lab, order_key: str) -> list[str]:
    return [row.id for row in slurm.queue() if order_key in row.comment]


@pytest.mark.capability("C-6", "S001-52", "S001-55", "S002-05")
def test_a_failed_job_is_submitted_once_and_goes_on_from_its_checkpoint(slurm: Lab, cluster: World) -> None:
    cluster.executor()
    started, checkpoints = submit(cluster, "--fault", "nccl@15:1")
    cluster.await_end(started, 120)
    order = cluster.order(started)
    for _ in range(2):
        cluster.send(order)
    done = cluster.await_outcome(order, "done", "failed", limit=120)
    slurm.wait_state(done.new_native_id, *OVER)

    assert done.state == "done"
    assert done.checkpoint_step == 10
    key = effect_key(started.spec.job, 1, "start")
    assert ours(slurm, key) == [done.new_native_id]
    assert {row.id for row in slurm.queue()} >= {native_id(started.incarnation), done.new_native_id}
    assert slurm.state(done.new_native_id) == "COMPLETED"
    starts = ledger(checkpoints, "start")
    assert [row["first_step"] for row in starts] == [1, 11]
    assert [row["native_id"] for row in starts] == [native_id(started.incarnation), done.new_native_id]
    assert starts[1]["environment"]["MIDWATCH_JOB"] == started.spec.job
    assert ledger(checkpoints, "done")
    output = cluster.directory / f"slurm-{done.new_native_id}.out"
    assert "started with an-argument" in output.read_text(), "the script's arguments are kept"

    def told() -> set[str]:
        return {
            f.effect_key for f in cluster.facts(started.spec.job) if f.incarnation == done.new_incarnation
        }

    wait_for(lambda: bool(told()), "the watcher tells of the new start", 60)
    assert told() == {key}


def test_orders_that_come_too_late_for_an_older_start_or_twice_do_nothing_and_are_answered(
    slurm: Lab, cluster: World
) -> None:
    cluster.executor()
    failed, its_checkpoints = submit(cluster, "--fault", "exception@15:1", name="failed")
    again, checkpoints = submit(cluster, "--fault", "hang@15", name="again")
    native = native_id(again.incarnation)
    wait_for(lambda: bool(ledger(checkpoints, "fault")), "it hangs", 60)
    cluster.await_end(failed, 120)
    late = cluster.order(failed, expires_ms=int(time.time() * 1000) - 1)
    cluster.send(late)
    slurm.run("scontrol", "requeue", native)
    second = f"slurm:{native}:1"
    wait_for(lambda: second in [f.incarnation for f in cluster.facts(again.spec.job)], "the requeue", 60)
    older = cluster.order(again)
    cluster.send(older)
    before = {row.id for row in slurm.queue()}
    assert "after its time" in cluster.await_outcome(late, "expired", "done").reason
    assert f"the job now runs as {second}" in cluster.await_outcome(older, "refused", "done").reason

    order = cluster.order(failed, seq=2)
    cluster.send(order)
    done = cluster.await_outcome(order, "done", "failed", limit=120)
    for repeated in (order, late, older):
        told = len(cluster.outcomes(repeated))
        cluster.send(repeated)
        wait_for(lambda one=repeated, n=told: len(cluster.outcomes(one)) > n, "an answer", 60)  # type: ignore[misc]  # bound at once
    assert [cluster.outcomes(o)[-1].state for o in (order, late, older)] == ["done", "expired", "refused"]
    assert {row.id for row in slurm.queue()} - before == {done.new_native_id}
    assert len(ledger(its_checkpoints, "start")) == 2
    assert {row["native_id"] for row in ledger(checkpoints, "start")} == {native}


def test_two_executors_on_two_hosts_submit_one_job_between_them(
    slurm: Lab, cluster: World, tmp_path: Path
) -> None:
    cluster.executor()
    cluster.executor(state=tmp_path / "another-host")
    started, checkpoints = submit(cluster, "--fault", "exception@15:1")
    cluster.await_end(started, 120)
    order = cluster.order(started)
    cluster.send(order)
    done = cluster.await_outcome(order, "done", "failed", limit=120)
    slurm.wait_state(done.new_native_id, *OVER)

    assert done.state == "done"
    key = effect_key(started.spec.job, 1, "start")
    ran = [row for row in slurm.queue() if key in row.comment and row.state != "CANCELLED"]
    assert [row.id for row in ran] == [done.new_native_id]
    assert [row["first_step"] for row in ledger(checkpoints, "start")] == [1, 11]
    assert not ledger(checkpoints, "overlap")


@pytest.mark.capability("S001-35", "S001-51")
def test_a_cancel_by_a_person_is_told_as_one_and_an_end_of_ours_is_not(slurm: Lab, cluster: World) -> None:
    cluster.executor()
    theirs, its_checkpoints = submit(cluster, "--fault", "hang@15", name="theirs")
    hung, checkpoints = submit(cluster, "--fault", "hang@15:1", name="hung")
    for place in (its_checkpoints, checkpoints):
        wait_for(lambda place=place: bool(ledger(place, "fault")), "it hangs", 60)  # type: ignore[misc]  # a bound loop variable
    slurm.run("scancel", native_id(theirs.incarnation))
    order = cluster.order(hung)
    cluster.send(order)
    cluster.await_end(theirs, 120)
    (fact,) = [f for f in cluster.facts(theirs.spec.job) if f.ended]
    assert (fact.mode, fact.error_type) == ("ended", "cancelled")
    assert fact.by_person

    assert cluster.await_outcome(order, "done", "failed", limit=120).state == "done"
    cluster.await_end(hung, 60)
    (fact,) = [f for f in cluster.facts(hung.spec.job) if f.ended and f.incarnation == hung.incarnation]
    assert not fact.by_person
    assert [row["first_step"] for row in ledger(checkpoints, "start")] == [1, 11]
    assert not ledger(checkpoints, "overlap")
    assert len(ledger(its_checkpoints, "start")) == 1


def test_a_scheduler_that_does_not_answer_is_no_end_of_its_jobs(slurm: Lab, cluster: World) -> None:
    executor = cluster.executor()
    started, checkpoints = submit(cluster, "--fault", "hang@15")
    # An srun that is still asking for its step when the controller goes gives up, and the job fails.
    wait_for(lambda: bool(ledger(checkpoints, "fault")), "every rank runs, and hangs")
    wait_for(lambda: bool(cluster.facts(started.spec.job)), "the watcher has seen it run")
    slurm.stop_controller()
    wait_for(
        lambda: "gave no usable answer" in cluster.log.read_text(),
        "the watcher is blind",
        90,
        seen=lambda: (slurm.run("scontrol", "ping"), calls_of(executor.pid), cluster.log.read_text()[-500:]),
    )
    slurm.start_controller()
    slurm.wait_state(native_id(started.incarnation), "RUNNING", "COMPLETING")
    slurm.run("scancel", native_id(started.incarnation))
    cluster.await_end(started, 120)
    (end,) = [f for f in cluster.facts(started.spec.job) if f.ended]
    assert end.new == "CANCELLED"


def test_nobody_asks_slurm_who_cancelled_the_jobs_of_others(slurm: Lab, cluster: World) -> None:
    asked = cluster.directory / "asked"
    squeue = cluster.directory / "tools" / "squeue"
    squeue.parent.mkdir()
    real = shutil.which("squeue", path=slurm.environment["PATH"])
    squeue.write_text(f'#!/bin/sh\necho "$@" >> {asked}\nexec {real} "$@"\n')
    squeue.chmod(0o755)
    cluster.environment["PATH"] = f"{squeue.parent}:{cluster.environment['PATH']}"
    sbatch = ("sbatch", "--parsable", "--hold", "-o", "/dev/null", "--wrap", "true")
    others = [slurm.run(*sbatch).stdout.strip() for _ in range(3)]
    slurm.run("scancel", *others)
    cluster.executor()
    started, checkpoints = submit(cluster, "--fault", "hang@15")
    wait_for(lambda: bool(ledger(checkpoints, "fault")), "every rank runs, and hangs")
    wait_for(lambda: bool(cluster.facts(started.spec.job)), "the watcher has seen it run")
    slurm.run("scancel", native_id(started.incarnation))
    cluster.await_end(started, 120)
    calls = [line.split() for line in asked.read_text().splitlines()]
    asked_about = {call[call.index("-j") + 1] for call in calls if "-j" in call}
    assert native_id(started.incarnation) in asked_about, "it asks who cancelled its own job"
    assert not asked_about & set(others)


def test_accounting_tells_who_cancelled(slurm_with_accounting: Lab, accounted: World) -> None:
    lab = slurm_with_accounting
    executor = accounted.executor()
    started, checkpoints = submit(accounted, "--fault", "hang@15")
    native = native_id(started.incarnation)
    # A start whose ranks do not run yet may fail by itself before the cancel comes.
    wait_for(lambda: bool(ledger(checkpoints, "fault")), "every rank runs, and hangs")
    wait_for(lambda: bool(accounted.facts(started.spec.job)), "the watcher has seen it run")
    executor.terminate()
    executor.wait(timeout=60)
    lab.run("scancel", native)

    def accounted_for() -> str:
        done = lab.run("sacct", "-nPX", "-o", "State", "-j", native)
        return done.stdout.strip() or done.stderr.strip()

    # SLURM's queue knows of the cancel before its accounting does, and then nobody can tell who did it.
    wait_for(lambda: "by" in accounted_for(), "accounting knows who cancelled it", 30, seen=accounted_for)
    accounted.executor()
    accounted.await_end(started, 120)
    (end,) = [f for f in accounted.facts(started.spec.job) if f.ended]
    assert end.by_person == "root"


def test_a_job_disarmed_by_its_short_name_is_not_restarted(slurm: Lab, cluster: World) -> None:
    cluster.executor()
    started, _ = submit(cluster, "--fault", "nccl_timeout@12:1")
    cluster.await_end(started)
    job = started.spec.job
    done = midwatch(cluster, "disarm", job.rpartition("/")[2])
    assert done.stdout == f"{job} is disarmed\n", done.stderr
    order = cluster.order(started)
    cluster.send(order)
    assert "disarmed by" in cluster.await_outcome(order, "refused", "done").reason
    assert ours(slurm, effect_key(job, 1, "start")) == []


def saved(checkpoints: Path, step: int) -> Path:
    """A complete checkpoint of one byte."""
    folder = checkpoints / f"step_{step}"
    folder.mkdir(parents=True)
    (folder / "w.pt").write_bytes(b"w")
    (folder / "manifest.json").write_text('{"shards": [{"file": "w.pt", "bytes": 1}]}')
    return folder


def choices(cluster: World, incarnation: str) -> set[tuple[int, str]]:
    """The checkpoints that the heartbeats of this start name."""
    beats = (decode_log(*message) for message in cluster.logs() if not message[1])
    ours = (b for b in beats if isinstance(b, Heartbeat) and b.origin.incarnation == incarnation)
    return {(b.checkpoint.number, b.checkpoint.path) for b in ours if b.checkpoint}


@pytest.mark.parametrize("exported", ["", "#SBATCH --export=NONE\n", "#SBATCH --export=PATH\n"])
def test_a_start_that_waited_in_the_queue_loads_the_newest_checkpoint_of_its_own_beginning(
    slurm: Lab, cluster: World, exported: str
) -> None:
    cluster.executor()
    name = f"told-{secrets.token_hex(4)}"
    checkpoints, shown = cluster.directory / f"{name} checkpoints", cluster.directory / f"{name}.txt"
    old = saved(checkpoints, 40)
    script = cluster.directory / f"{name}.sh"
    script.write_text(
        f"#!/bin/bash\n#SBATCH --requeue\n{exported}\n"
        'say() { echo "$MIDWATCH_RESUME_FROM|$MIDWATCH_RESUME_STEP|$MIDWATCH_ATTEMPT|$*" >>'
        f" '{shown}'; }}\n"
        'say "$@"\n[ -n "$MIDWATCH_ATTEMPT" ] && sleep 600\nexit 1\n'
    )
    started = cluster.run(
        "sbatch",
        f"--job-name={name}",
        str(script),
        "--lr",
        job=name,
        checkpoint_directory=str(checkpoints),
        resume_arguments=("--load", "{checkpoint}"),
    )
    cluster.await_end(started, 120)
    blocker = slurm.submit("--exclusive", f"--nodes={len(slurm.layout.node_ports)}", script="sleep 600")
    slurm.wait_state(blocker, "RUNNING")
    order = cluster.order(started)
    cluster.send(order)
    done = cluster.await_outcome(order, "done", "failed", limit=120)
    slurm.wait_state(done.new_native_id, "PENDING")
    newer = saved(checkpoints, 60)
    slurm.run("scancel", blocker)
    wait_for(lambda: len(shown.read_text().splitlines()) > 1, "the second start", 60)
    wait_for(lambda: choices(cluster, done.new_incarnation), "its heartbeats name the checkpoint", 60)
    newest = saved(checkpoints, 80)
    slurm.run("scontrol", "requeue", done.new_native_id)
    wait_for(lambda: len(shown.read_text().splitlines()) > 2, "SLURM starts it again", 120)

    assert (done.checkpoint_step, done.checkpoint) == (40, ""), "what lay there at its release"
    assert old.exists()
    assert shown.read_text().splitlines() == [
        "|||--lr",
        f"{newer}|60|2|--lr --load {newer}",
        f"{newest}|80|3|--lr --load {newest}",
    ]
    assert choices(cluster, done.new_incarnation) == {(60, str(newer))}
