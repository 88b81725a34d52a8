"""Trainings on a Ray head under a whole midwatch, which run beside one another and beside other tests."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from integration.chain.installation import Installation, Job, installation, midwatch
from integration.chain.rescued import Rescue, fail
from integration.chain.slurm_training import Training
from integration.ray.trained_on_s3 import TrainedOnS3, s3_server
from midwatch.agents.local.embedded.stack import Endpoints
from ray_lab.lab import RayLab
from ray_lab.world import variables


@contextmanager
def ray_installation(directory: Path, stack: Endpoints, lab: RayLab) -> Iterator[Installation]:
    """All processes are ready, and one of them ships the head's driver logs."""
    lab.left_alone = ("job-", "rescued-")
    try:
        with s3_server() as store, installation(directory, stack) as made:
            made.environment |= variables(lab) | store
            for name in ("match", "detect", "decide", "executor"):
                made.start(name)
            made.start("ship-ray", *midwatch("ship", f"--ray={lab.address}"))
            made.ready("match", "detect", "decide", "executor")
            yield made
    finally:
        lab.left_alone = ()
        lab.clear()


@dataclass
class RayTraining(Training):
    """The toy training as the driver of a Ray job; its ranks print into the driver's log."""

    options: tuple[str, ...] = ()
    pace_ms: int = 50
    name: str = field(default_factory=lambda: f"job-{secrets.token_hex(4)}")

    def submit(self, *options: str) -> Job:
        logs = self.directory / "checkpoints" / "logs"
        logs.mkdir(parents=True)
        for rank in range(4):  # as Ray does with its workers' output, all of it goes to the driver's log
            (logs / f"rank_{rank}.log").symlink_to("/dev/stdout")
        trainer = [sys.executable, "-m", "midwatch.agents.drill.trainer", "--ranks=4", "--save-every=10"]
        trainer += [f"--checkpoint-dir={self.directory}/checkpoints", f"--iterations={self.iterations}"]
        trainer += [f"--iteration-ms={self.pace_ms}", "--collective-timeout-ms=1500"]
        trainer += [f"--fault={fault}" for fault in self.faults]
        return self.run(*options, "--", "ray", "job", "submit", *self.options, "--", *trainer)


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

    watch: Installation
    trainings: dict[str, Training]
    jobs: dict[str, Job]
    rescue: Rescue


@contextmanager
def begun(directory: Path, stack: Endpoints, lab: RayLab) -> Iterator[Future[Played]]:
    """A thread begins them all. They end with this context."""
    with ExitStack() as until, ThreadPoolExecutor(1) as pool:
        yield pool.submit(_begin, until, directory, stack, lab)


def _begin(until: ExitStack, directory: Path, stack: Endpoints, lab: RayLab) -> Played:
    watch = until.enter_context(ray_installation(directory / "watch", stack, lab))
    trainings: dict[str, RayTraining | TrainedByRay | TrainedOnS3] = {
        "under Ray Train": TrainedByRay(watch, directory / "train"),
        "under Ray Train on S3": TrainedOnS3(watch, directory / "s3"),
        "by the API": RayTraining(watch, directory / "api", ("nccl@25:1",)),
        "by a sidecar in the entrypoint": RayTraining(watch, directory / "sidecar", ("nccl@25:1",)),
        "out of memory": RayTraining(watch, directory / "memory", ("oom@15",)),
        "a person stops it": RayTraining(watch, directory / "stopped", iterations=100_000, pace_ms=500),
    }
    options = {"by a sidecar in the entrypoint": ("--sidecar",)}
    jobs = {name: each.submit(*options.get(name, ())) for name, each in trainings.items()}
    rescue = fail(watch, directory / "rescued", "ray")
    return Played(watch, dict(trainings), jobs, rescue)
