"""The whole chain on a real Ray head: what a driver prints decides what becomes of it."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from integration.chain.installation import Installation, Job, installation, midwatch
from integration.chain.rescued import check_rescue, check_why, fail
from integration.chain.slurm_training import SOON, Training, decided, restarted, shown
from integration.ray.trained_on_s3 import TrainedOnS3, files, s3_server
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Incident
from processes import wait_for
from ray_lab.lab import RayLab
from ray_lab.world import variables

pytestmark = pytest.mark.integration


@contextmanager
def ray_installation(directory: Path, stack: Endpoints, lab: RayLab) -> Iterator[Installation]:
    """All processes are ready, and one of them ships the head's driver logs."""
    try:
        with s3_server() as store, installation(directory, stack) as made:
            made.environment |= variables(lab) | store
            for name in ("match", "detect", "decide", "executor"):
                made.start(name)
            made.start("ship-ray", *midwatch("ship", f"--ray={lab.address}"))
            made.ready("match", "detect", "decide", "executor")
            yield made
    finally:
        lab.clear()


@dataclass
class RayTraining(Training):
    """The toy training as the driver of a Ray job; its ranks print into the driver's log."""

    options: tuple[str, ...] = ()
    name: str = field(default_factory=lambda: f"job-{secrets.token_hex(4)}")

    def submit(self, *options: str) -> Job:
        logs = self.directory / "checkpoints" / "logs"
        logs.mkdir(parents=True)
        for rank in range(4):  # as Ray does with its workers' output, all of it goes to the driver's log
            (logs / f"rank_{rank}.log").symlink_to("/dev/stdout")
        trainer = [sys.executable, "-m", "midwatch.agents.drill.trainer", "--ranks=4", "--save-every=10"]
        trainer += [f"--checkpoint-dir={self.directory}/checkpoints", f"--iterations={self.iterations}"]
        trainer += ["--iteration-ms=50", "--collective-timeout-ms=1500"]
        trainer += [f"--fault={fault}" for fault in self.faults]
        return self.run(*options, "--", "ray", "job", "submit", *self.options, "--", *trainer)


@pytest.fixture(scope="module")
def watch(
    stack: Endpoints, tmp_path_factory: pytest.TempPathFactory, ray_session: RayLab
) -> Iterator[Installation]:
    with ray_installation(tmp_path_factory.mktemp("watch"), stack, ray_session) as made:
        yield made


@dataclass
class TrainedByRay(Training):
    """A training under Ray Train, in Ray's own Python."""

    name: str = field(default_factory=lambda: f"job-{secrets.token_hex(4)}")

    def submit(self, *options: str) -> Job:
        (self.directory / "checkpoints" / "storage").mkdir(parents=True)
        script = Path(__file__).with_name("ray_train.py")
        words = ("ray", "job", "submit", "--", "python", str(script), str(self.directory / "checkpoints"))
        return self.run(*options, f"--checkpoint-dir={self.directory}/checkpoints/storage", "--", *words)


@dataclass
class Played:
    """Trainings that run side by side, for each of them mostly waits."""

    trainings: dict[str, Training]
    jobs: dict[str, Job]


@pytest.fixture(scope="module")
def played(watch: Installation, tmp_path_factory: pytest.TempPathFactory) -> Played:
    place = tmp_path_factory.mktemp("jobs")
    trainings: dict[str, RayTraining | TrainedByRay | TrainedOnS3] = {
        "under Ray Train": TrainedByRay(watch, place / "train"),
        "under Ray Train on S3": TrainedOnS3(watch, place / "s3"),
        "by the API": RayTraining(watch, place / "api", ("nccl@25:1",)),
        "by a sidecar in the entrypoint": RayTraining(watch, place / "sidecar", ("nccl@25:1",)),
        "out of memory": RayTraining(watch, place / "memory", ("oom@15",)),
        "a person stops it": RayTraining(watch, place / "stopped", iterations=100_000),
    }
    options = {"by a sidecar in the entrypoint": ("--sidecar",)}
    return Played(
        dict(trainings), {name: each.submit(*options.get(name, ())) for name, each in trainings.items()}
    )


@pytest.mark.capability("C-7", "S000-14", "S002-05")
@pytest.mark.parametrize("shipped", ["by the API", "by a sidecar in the entrypoint"])
def test_a_timeout_gives_one_new_submission_that_resumes(
    played: Played, ray_session: RayLab, shipped: str
) -> None:
    training, job = played.trainings[shipped], played.jobs[shipped]
    wait_for(lambda: len(training.ledger().starts) == 2, "the second start", SOON)
    assert training.ledger().starts[1].first_step == 21
    wait_for(lambda: decided(job)[-1:] == ["none"], "its good end is seen", SOON)
    assert decided(job) == ["restart", "none"], [(d.attempt, d.reason) for d in job.decisions()]
    assert len(job.commands()) == 1
    outcome = restarted(job)
    assert outcome is not None
    ours = _submissions(ray_session, job)
    assert {j["submission_id"] for j in ours} == {outcome.old_native_id, outcome.new_native_id}
    assert [j["status"] for j in ours] == ["FAILED", "SUCCEEDED"]


def test_out_of_memory_gives_no_new_submission(played: Played, ray_session: RayLab) -> None:
    training, job = played.trainings["out of memory"], played.jobs["out of memory"]
    wait_for(lambda: decided(job) == ["stop"], "the refusal", SOON)
    assert [j["status"] for j in _submissions(ray_session, job)] == ["FAILED"]
    assert len(training.ledger().starts) == 1
    assert job.commands() == []


def test_what_a_person_stops_stays_stopped(played: Played, ray_session: RayLab) -> None:
    training, job = played.trainings["a person stops it"], played.jobs["a person stops it"]
    wait_for(lambda: job.step() > 5, "progress is seen", SOON)
    (live,) = _submissions(ray_session, job)
    ray_session.api("POST", f"/api/jobs/{live['submission_id']}/stop")
    wait_for(lambda: decided(job) == ["none"], "it is known for what it is", SOON)
    assert shown(job) == ("cancelled", 1)
    assert len(training.ledger().starts) == 1


@pytest.mark.capability("S000-12", "S000-13", "S000-14", "S000-15")
def test_a_person_resumes_a_job_with_a_changed_clone_of_the_configuration_in_its_working_directory(
    watch: Installation, ray_session: RayLab, tmp_path: Path
) -> None:
    rescue = fail(watch, tmp_path / "job", "ray")
    check_why(rescue, "ray")
    shown = check_rescue(rescue).stdout
    ours = _submissions(ray_session, rescue.job)
    assert [j["status"] for j in ours] == ["FAILED", "SUCCEEDED"]
    assert f"is started again as {ours[1]['submission_id']}" in shown
    assert ours[1]["entrypoint"].endswith("--config=train-resume.yaml")


@pytest.mark.capability("S002-05", "S000-11")
def test_ray_train_restarts_its_workers_itself_and_midwatch_the_job_once_its_failures_ran_out(
    played: Played, ray_session: RayLab
) -> None:
    training, job = played.trainings["under Ray Train"], played.jobs["under Ray Train"]
    wait_for(
        lambda: decided(job)[-1:] == ["none"],
        "its good end is seen",
        2 * SOON,
        seen=lambda: _decided_by(job),
    )
    assert decided(job) == ["restart", "none"]
    assert [j["status"] for j in _submissions(ray_session, job)] == ["FAILED", "SUCCEEDED"]
    storage = training.directory / "checkpoints" / "storage"
    complete, torn = sorted((storage / "run-1").glob("checkpoint_2*"))[-2:]
    assert (complete / "state.json").read_text() == '{"step": 4}'
    assert [path.name for path in torn.iterdir() if path.name.endswith(".bin")] == ["rank_0.bin"]
    assert (training.directory / "checkpoints" / "starts").read_text() == f"\n{complete}\n"
    outcome = restarted(job)
    assert outcome is not None
    assert (outcome.checkpoint_step, outcome.checkpoint) == (4, str(complete))
    assert f"{torn}: checkpoint_manager_snapshot.json does not name it" in outcome.reason
    settled = [each for each in job.all_of(Incident) if each.attempt == 1 and each.state == "settled"]
    assert "NCCL error: remote process exited" in settled[-1].verdict.root_line


@pytest.mark.capability("S002-05", "S000-11")
def test_a_training_that_ray_train_keeps_on_s3_resumes_from_its_newest_complete_checkpoint(
    played: Played, ray_session: RayLab
) -> None:
    training, job = played.trainings["under Ray Train on S3"], played.jobs["under Ray Train on S3"]
    assert isinstance(training, TrainedOnS3)
    wait_for(
        lambda: decided(job)[-1:] == ["none"],
        "its good end is seen",
        2 * SOON,
        seen=lambda: _decided_by(job),
    )
    assert decided(job) == ["restart", "none"]
    assert [j["status"] for j in _submissions(ray_session, job)] == ["FAILED", "SUCCEEDED"]
    store, run = files(training.watch.environment), f"{training.storage}/run-1"
    complete, torn = (f"s3://{path}" for path in sorted(store.glob(f"{run}/checkpoint_2*"))[-2:])
    assert store.cat_file(f"{complete}/state.json") == b'{"step": 4}'
    assert [path.rpartition("/")[2] for path in store.find(torn)] == ["rank_0.bin"]
    assert training.notes.read_text() == f"\n{complete}\n"
    outcome = restarted(job)
    assert outcome is not None
    assert (outcome.checkpoint_step, outcome.checkpoint) == (4, complete)
    assert f"{torn}: checkpoint_manager_snapshot.json does not name it" in outcome.reason
    assert len(store.glob(f"{training.storage}/run-2/checkpoint_2*")) == 3


def _decided_by(job: Job) -> object:
    """The decisions with their reasons, and the root line of each settled incident."""
    roots = [each.verdict.root_line for each in job.all_of(Incident) if each.state == "settled"]
    return [(each.attempt, each.action, each.reason) for each in job.decisions()], roots


def _submissions(lab: RayLab, job: Job) -> list[dict[str, Any]]:
    """The job's submissions in the order of their starts, by the metadata that midwatch gives them."""
    ours = [e for e in lab.submissions() if (e["metadata"] or {}).get("midwatch_job", "").endswith(job.name)]
    return sorted(ours, key=lambda each: int(each["start_time"]))
