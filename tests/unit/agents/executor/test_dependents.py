"""Only a job that its user let follow is pointed at a new start; of all others it is said why not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from midwatch.agents.executor.arming import mark_job
from midwatch.agents.executor.consumer import Desk
from midwatch.agents.executor.dependents import point_dependents
from midwatch.agents.schedulers.base import Cluster, DependentJob, Hint
from midwatch.agents.schedulers.slurm.scheduler import SlurmCluster
from midwatch.agents.signing import Signer, new_signer
from midwatch.agents.watcher.census import JobStart
from midwatch.streams.records import SchedulerFact, Spec

WAITS = DependentJob("47", "ann", "afterok:44(failed)")
JOB = "slurm:ann/evaluation"


class Slurm(SlurmCluster):
    """Shows one dependent, and keeps what was done."""

    def __init__(self, *shown: DependentJob) -> None:
        self.name, self.shown, self.done = "slurm", shown, list[tuple[str, ...]]()

    def dependents(self, native: str) -> tuple[DependentJob, ...]:
        assert native == "44"
        return self.shown

    def repoint(self, argv: tuple[str, ...]) -> Hint:
        self.done.append(argv)
        return Hint("done")


@dataclass
class Around:
    """A desk with one watched dependent; `facts` are the records that were written."""

    directory: Path
    signer: Signer = field(default_factory=new_signer)
    facts: list[SchedulerFact] = field(default_factory=list)
    dependent: Spec | None = None
    acting: bool = True

    def point(self, cluster: object) -> str:
        desk = cast(Desk, self)
        return point_dependents(desk, cast(Cluster, cluster), spec("slurm:ann/train"), "44", "45")

    @property
    def verifier(self) -> Any:
        return self.signer.verifier()

    @property
    def census(self) -> Any:
        return self

    @property
    def reporter(self) -> Any:
        return self

    @property
    def state_directory(self) -> Path:
        return self.directory

    def starts(self, kind: str) -> tuple[JobStart, ...]:
        return (JobStart(JOB, "slurm:47:0", "PENDING"),) if self.dependent and kind == "slurm" else ()

    def spec_of(self, job: str) -> Spec | None:
        return self.dependent if job == JOB else None

    def event(self, fact: SchedulerFact) -> None:
        self.facts.append(fact)


def spec(job: str, **changes: object) -> Spec:
    made = Spec(job, "slurm", ("sbatch", "t.sh"), "/", {}, "ann", (), "", "verdict", armed=False)
    return replace(made, **changes)  # type: ignore[arg-type]  # any field


def around(tmp_path: Path, **changes: object) -> Around:
    made = Around(tmp_path)
    made.dependent = made.signer.sign(spec(JOB, **{"follow": True, **changes}))
    return made


def test_a_job_that_follows_is_pointed_at_the_new_start_and_both_are_told(tmp_path: Path) -> None:
    slurm, desk = Slurm(WAITS), around(tmp_path)
    text = desk.point(slurm)
    assert text == "job 47 waited for 44, and now waits for 45"
    assert slurm.done == [("scontrol", "update", "jobid=47", "dependency=afterok:45")]
    assert [(fact.job, fact.new, fact.ended, fact.reason) for fact in desk.facts] == [
        (JOB, "PENDING", False, text)
    ]


@pytest.mark.parametrize(
    ("changes", "dependent", "why"),
    [
        ({"follow": False}, WAITS, "it was not started with `midwatch run --follow`"),
        ({"user": "bob"}, WAITS, "it belongs to ann"),
        ({}, replace(WAITS, user="bob"), "it belongs to bob"),
        ({}, replace(WAITS, native_id="48"), "it was not started with `midwatch run --follow`"),
    ],
)
def test_any_other_job_is_left_alone_and_told_what_helps(
    tmp_path: Path, changes: dict[str, object], dependent: DependentJob, why: str
) -> None:
    slurm, desk = Slurm(dependent), around(tmp_path, **changes)
    text = desk.point(slurm)
    assert f"which was started again as 45: {why}; `scontrol update jobid={dependent.native_id}" in text
    assert slurm.done == []


def test_a_spec_of_a_stranger_and_a_disarmed_job_are_left_alone(tmp_path: Path) -> None:
    slurm, desk = Slurm(WAITS), around(tmp_path)
    desk.signer = new_signer()
    assert "its spec is not signed by this installation's key" in desk.point(slurm)
    desk = around(tmp_path)
    mark_job(tmp_path, JOB, armed=False, at=1.0)
    assert "disarmed by" in desk.point(slurm)
    assert slurm.done == []


def test_a_job_that_waits_for_a_whole_array_is_told_that_it_never_runs(tmp_path: Path) -> None:
    slurm, desk = Slurm(replace(WAITS, dependency="afterok:44_*(failed),afte")), around(tmp_path)
    assert desk.point(slurm).endswith("it names the whole array, so it never runs")
    assert slurm.done == []


def test_a_scheduler_that_knows_no_dependents_is_not_asked(tmp_path: Path) -> None:
    assert around(tmp_path).point(object()) == ""
