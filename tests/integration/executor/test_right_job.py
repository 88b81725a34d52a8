"""Which job a person means: found as `why` finds it, and never a job that is not there."""

from __future__ import annotations

import getpass
import json
from dataclasses import replace

import pytest

from executor_world import World, midwatch
from midwatch.agents.executor.arming import arming
from midwatch.agents.launch.job_spec import spec_event
from midwatch.agents.reporter import Reporter
from midwatch.streams.records import Spec
from midwatch.streams.records.identity import native_id

pytestmark = pytest.mark.integration


def test_a_short_name_means_the_job_that_is_known_by_it_on_whatever_cluster(world: World) -> None:
    spec = replace(world.run("true", job="dis1").spec, job=f"slurm:{getpass.getuser()}/dis2", cluster="slurm")
    publish(world, world.signer.sign(spec))
    done = midwatch(world, "disarm", "dis2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{spec.job} is disarmed\n"
    state = world.settings.state_directory
    assert arming(state, spec.job, armed_by_spec=True).reason.startswith("disarmed by")
    assert arming(state, f"local:{getpass.getuser()}/dis2", armed_by_spec=True).armed


def test_a_name_that_two_jobs_have_is_asked_back_and_disarms_neither(world: World) -> None:
    spec = world.run("true", job="twice", armed=True).spec
    other = world.signer.sign(replace(spec, job=f"slurm:{getpass.getuser()}/twice", cluster="slurm"))
    publish(world, other)
    done = midwatch(world, "disarm", "twice")
    assert done.returncode == 2
    assert spec.job in done.stderr
    assert other.job in done.stderr
    for job in (spec.job, other.job):
        assert arming(world.settings.state_directory, job, armed_by_spec=True).armed


def test_a_schedulers_id_means_the_job_that_runs_under_it(world: World) -> None:
    started = world.run("sleep", "300", job="named", armed=True)
    done = midwatch(world, "disarm", native_id(started.incarnation))
    assert done.stdout == f"{started.spec.job} is disarmed\n", done.stderr


@pytest.mark.parametrize("act", ["arm", "disarm"])
@pytest.mark.parametrize("name", ["nobody", "slurm:somebody/nobody"])
def test_a_job_that_nobody_knows_is_an_error_and_leaves_no_trace(world: World, act: str, name: str) -> None:
    done = midwatch(world, act, name)
    assert done.returncode == 2, done.stdout
    assert "no such job" in done.stderr
    assert not (world.settings.state_directory / "arming").exists()
    listed = midwatch(world, "jobs", "--json")
    assert json.loads(listed.stdout)["jobs"] == []


def test_a_job_that_is_yet_to_come_is_disarmed_by_its_whole_name_and_listed_once_it_is_there(
    world: World,
) -> None:
    world.executor()
    job = f"local:{getpass.getuser()}/later"
    assert midwatch(world, "disarm", "--future", "later").returncode == 2, "which cluster is not known"
    done = midwatch(world, "disarm", "--future", job)
    assert (done.returncode, done.stdout) == (0, f"{job} is disarmed\n")
    assert json.loads(midwatch(world, "jobs", "--json").stdout)["jobs"] == []
    run = midwatch(world, "run", "--act", "--job", "later", "--", "sleep", "300")
    assert "disarmed by" in run.stderr
    (row,) = json.loads(midwatch(world, "jobs", "--json").stdout)["jobs"]
    assert (row["job"], row["armed"]) == (job, False)
    assert row["armed_reason"].startswith("disarmed by")


def test_jobs_says_who_is_armed(world: World) -> None:
    armed, observed = (world.run("sleep", "300", armed=word).spec.job for word in (True, False))
    listed = midwatch(world, "jobs")
    rows = {line.split()[0]: line for line in listed.stdout.splitlines()}
    assert " armed " in rows[armed]
    assert " observed " in rows[observed]
    assert midwatch(world, "disarm", armed).returncode == 0
    (line,) = [line for line in midwatch(world, "jobs").stdout.splitlines() if line.startswith(armed)]
    assert " disarmed " in line


def test_without_kafka_a_whole_name_is_disarmed_and_that_nothing_was_checked_is_an_error(
    world: World,
) -> None:
    away, job = ("--set", "kafka.bootstrap=127.0.0.1:1"), f"slurm:{getpass.getuser()}/far"
    short = midwatch(world, "disarm", "far", *away)
    assert short.returncode == 4
    assert "is disarmed" not in short.stdout
    assert "disarm --all" in short.stderr
    whole = midwatch(world, "disarm", job, *away)
    assert whole.returncode == 4
    assert f"{job} is disarmed" in whole.stdout
    assert not arming(world.settings.state_directory, job, armed_by_spec=True).armed


def test_doctor_says_the_mode_and_that_all_is_disarmed(world: World) -> None:
    assert "act: it acts for armed jobs" in midwatch(world, "doctor").stdout
    assert midwatch(world, "disarm", "--all").returncode == 0
    told = midwatch(world, "doctor", "--json")
    body = json.loads(told.stdout)
    assert body["mode"] == "act"
    assert body["disarmed_by"] == getpass.getuser()
    assert any("disarm --all" in warning for warning in body["warnings"])


def test_a_second_live_job_of_one_name_is_warned_of(world: World) -> None:
    first = world.run("sleep", "300", job="same").spec.job
    again = midwatch(world, "run", "--job", "same", "--", "true")
    assert again.returncode == 0
    assert f"{first} runs already" in again.stderr
    assert "runs already" not in midwatch(world, "run", "--job", "another", "--", "true").stderr


def test_a_name_that_lives_on_another_cluster_is_warned_of(world: World) -> None:
    first = world.run("sleep", "300", job="both")
    other = world.signer.sign(replace(first.spec, job=f"slurm:{getpass.getuser()}/both", cluster="slurm"))
    publish(world, other, incarnation="slurm:41:0")
    told = midwatch(world, "run", "--job", "both", "--", "true").stderr
    assert f"{other.job} runs already" in told
    assert "give its whole name" in told


def test_a_checkpoint_directory_that_a_live_job_writes_to_is_told(world: World) -> None:
    (world.directory / "ckpt").mkdir()
    first = world.run("sleep", "300", checkpoint_directory="ckpt").spec.job
    told = midwatch(world, "run", "--checkpoint-dir", "./ckpt/", "--", "true").stderr
    assert f"{first} writes its checkpoints to the same directory" in told


def test_jobs_that_are_over_are_not_warned_of(world: World) -> None:
    world.executor()
    (world.directory / "ckpt").mkdir()
    world.await_end(world.run("true", job="over", checkpoint_directory="ckpt"))
    told = midwatch(world, "run", "--job", "over", "--checkpoint-dir", "ckpt", "--", "true").stderr
    assert "already" not in told
    assert "same directory" not in told


def publish(world: World, spec: Spec, incarnation: str = "") -> None:
    """As another host's `midwatch run` would."""
    reporter = Reporter(world.settings)
    reporter.spec(spec)
    if incarnation:
        reporter.event(spec_event(spec, incarnation))
    reporter.close()
