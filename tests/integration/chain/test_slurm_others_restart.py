"""On a real SLURM: who else starts a job again, and what midwatch then leaves alone."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job
from integration.chain.slurm_training import SOON, Training, decided, shown
from midwatch.agents.query.topic_reader import read_topics
from midwatch.streams.records import Snapshot
from processes import wait_for
from slurm_lab.lab import Lab

pytestmark = pytest.mark.slurm

LONG = 100_000


@pytest.fixture
def watch(watch_on_slurm: Installation, slurm: Lab) -> Installation:  # noqa: ARG001 - it is empty then
    return watch_on_slurm


def _node_of(training: Training) -> str:
    return str(training.noted("start")[-1]["node"])


def _attempts(job: Job) -> dict[str, int]:
    """The number of each start that detect knows of."""
    name = _whole_name(job).encode()
    events = job.installation.settings.topic_names.events
    snapshots = [
        seen.record
        for seen in read_topics(job.installation.settings, [events], only_key=name).seen
        if isinstance(seen.record, Snapshot)
    ]
    return dict(snapshots[-1].incarnations) if snapshots else {}


def test_what_slurm_itself_starts_again_is_the_next_attempt_without_a_command(
    watch: Installation, tmp_path: Path, slurm: Lab
) -> None:
    before = {row.id for row in slurm.queue()}
    trainings = [Training(watch, tmp_path / name, iterations=LONG) for name in ("requeued", "failed-over")]
    jobs = [training.submit("--requeue", "--exclusive") for training in trainings]
    for training, job in zip(trainings, jobs, strict=True):
        wait_for(partial(training.noted, "save"), "it has saved", SOON)
        wait_for(lambda job=job: job.step() > 5, "it is watched", SOON)  # type: ignore[misc]  # bound at once
    slurm.run("scontrol", "requeue", trainings[0].native_ids()[0])
    slurm.run("scontrol", "update", f"nodename={_node_of(trainings[1])}", "state=down", "reason=drill")

    for training, job in zip(trainings, jobs, strict=True):
        (native,) = set(training.native_ids())
        both = {f"slurm:{native}:0": 1, f"slurm:{native}:1": 2}
        wait_for(lambda job=job, both=both: _attempts(job) == both, "it is attempt 2", SOON)  # type: ignore[misc]  # as above
        wait_for(lambda one=training: len(one.noted("start")) == 2, "it trains again", SOON)  # type: ignore[misc]  # as above
        wait_for(lambda job=job: shown(job) == ("running", 2), "`jobs` shows it", SOON)  # type: ignore[misc]  # as above
        assert training.native_ids() == [native, native], "the same job of SLURM"
        assert [row["restarts"] for row in training.noted("start")] == [0, 1]
        assert training.noted("overlap") == []
        assert decided(job) in ([], ["none"]), "its successor may be heard of before its end"
        assert job.findings("two_alive") == []
        assert job.commands() == []
    after = {row.id for row in slurm.queue()} - before
    assert after == {native for training in trainings for native in training.native_ids()}


def test_a_person_who_submits_it_again_makes_the_next_attempt_and_midwatch_none(
    watch: Installation, tmp_path: Path, slurm: Lab
) -> None:
    before = {row.id for row in slurm.queue()}
    training = Training(watch, tmp_path / "job", ("oom@15:1",), iterations=40)
    job = training.submit()
    wait_for(lambda: decided(job) == ["stop"], "the refusal", SOON)
    training.faults = ()
    training.submit()
    wait_for(lambda: decided(job) == ["stop", "none"], "the good end of the second", SOON)
    assert len(training.native_ids()) == 2
    assert {row.id: row.state for row in slurm.queue() if row.id not in before} == dict(
        zip(training.native_ids(), ("FAILED", "COMPLETED"), strict=True)
    )
    assert job.commands() == []


@pytest.mark.capability("S004-33")
def test_two_alive_under_one_name_are_told_and_nothing_is_started_beside_them(
    watch: Installation, tmp_path: Path, slurm: Lab
) -> None:
    before = {row.id for row in slurm.queue()}
    first = Training(watch, tmp_path / "first", iterations=LONG)
    job = first.submit()
    wait_for(lambda: job.step() > 5, "progress is seen", SOON)

    # By hand and in another directory: only the name says that it is the same run.
    second = Training(watch, tmp_path / "second", ("nccl@25",))
    ship = f"{sys.executable} -P -m midwatch ship {second.directory}/logs &\n"
    name = (
        f"export MIDWATCH_JOB={_whole_name(job)} MIDWATCH_STATE_DIRECTORY={watch.settings.state_directory}\n"
    )
    script = second.script(beside=name + ship)
    assert slurm.run("sbatch", f"--exclude={_node_of(first)}", str(script)).returncode == 0

    wait_for(lambda: bool(job.findings("two_alive")), "it is told", SOON)
    wait_for(lambda: "hold" in decided(job), "the second has failed, and a person is asked", SOON)
    held = next(d for d in job.decisions() if d.incident and d.action == "hold")
    assert "two attempts of this job are alive at once" in held.reason
    assert job.commands() == []
    assert (len(first.native_ids()), len(second.native_ids())) == (1, 1)
    assert {row.id: row.state for row in slurm.queue() if row.id not in before} == {
        first.native_ids()[0]: "RUNNING",
        second.native_ids()[0]: "FAILED",
    }


def _whole_name(job: Job) -> str:
    story = job.story()
    assert story is not None
    return story.job
