"""An installation whose executor acts on a real Ray head."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from executor_world import TRAINER, World
from midwatch.agents.launch.job_spec import Started
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Command
from midwatch.streams.records.effect_keys import effect_key
from midwatch.streams.settings.schema import RaySettings
from midwatch.streams.settings.secret import Secret
from processes import wait_for
from ray_lab.lab import RayLab


def variables(lab: RayLab) -> dict[str, str]:
    """The settings of this head as MIDWATCH_* variables."""
    token = {"MIDWATCH_RAY__TOKEN": lab.token} if lab.token else {}
    return {"MIDWATCH_RAY__ADDRESS": lab.address, "MIDWATCH_RAY__PYTHON": sys.executable, **token}


def settings(lab: RayLab) -> RaySettings:
    return RaySettings(address=lab.address, token=Secret(lab.token), python=sys.executable)


@dataclass
class Trained:
    """A training on Ray, and where its ledger is."""

    started: Started
    checkpoints: Path

    @property
    def key(self) -> str:
        """The submission id of its second start."""
        return effect_key(self.started.spec.job, 1, "start")

    @property
    def first(self) -> str:
        return self.started.incarnation.split(":")[1]


class RayWorld(World):
    """One installation with a head. `submit` is `midwatch run -- ray job submit`."""

    def __init__(
        self,
        directory: Path,
        stack: Endpoints,
        lab: RayLab,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        many = {"MIDWATCH_EXECUTOR__STORM_JOBS": "1000", "MIDWATCH_EXECUTOR__COMMANDS_PER_HOUR": "1000"}
        super().__init__(directory, stack, environment={**many, **variables(lab), **(environment or {})})
        self.lab = lab
        self.settings = replace(self.settings, ray=settings(lab))

    def submit(self, *words: str, options: tuple[str, ...] = (), **more: Any) -> Started:
        return self.run("ray", "job", "submit", *options, "--", *words, **more)

    def train_on_ray(self, *arguments: str, options: tuple[str, ...] = (), **more: Any) -> Trained:
        """The drill's trainer with two ranks."""
        place = self.directory / f"checkpoints-{secrets.token_hex(4)}"
        argv = [sys.executable, str(TRAINER), "--checkpoint-dir", str(place), "--ranks", "2"]
        argv += ["--iterations", "30", "--iteration-ms", "10", "--collective-timeout-ms", "500", *arguments]
        started = self.submit(*argv, options=options, checkpoint_directory=str(place), **more)
        return Trained(started, place)

    def restart(self, trained: Trained) -> Command:
        """The command to start it again, once its end is known."""
        self.await_end(trained.started)
        command = self.order(trained.started)
        self.send(command)
        return command

    def announced(self, trained: Trained) -> None:
        """Until the executor's census names the start, so that a command for it is not refused."""
        job = trained.started.spec.job
        wait_for(lambda: bool(self.facts(job)), "a fact of the start", 60)


@pytest.fixture
def ray_world(tmp_path: Path, stack: Endpoints, ray_head: RayLab) -> Iterator[RayWorld]:
    made = RayWorld(tmp_path, stack, ray_head)
    yield made
    made.close()
