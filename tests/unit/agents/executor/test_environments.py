"""The specs of an earlier midwatch, whose variables the executor moves into a file when it starts."""

from __future__ import annotations

import getpass
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from midwatch.agents.executor.environments import replace_open_specs
from midwatch.agents.launch.submission import keep
from midwatch.agents.schedulers.wrapping import environment_of
from midwatch.agents.signing import new_signer
from midwatch.streams.records import Spec


@dataclass
class Topics:
    """What the executor reads, and what it publishes."""

    open: list[Spec]
    published: list[Spec] = field(default_factory=list)

    def open_specs(self) -> list[Spec]:
        return self.open

    def spec(self, spec: Spec) -> None:
        self.published.append(spec)


@pytest.mark.parametrize(
    ("options", "line", "name"),
    [((), "#SBATCH -J in-script", "in-script"), (("--job-name=train.sh",), "", "train.sh")],
)
def test_a_batch_job_keeps_the_name_that_sbatch_gave_it(
    tmp_path: Path, options: tuple[str, ...], line: str, name: str
) -> None:
    """sbatch set it itself while it sent the variables. From a file it does not, and `%x` would be lost."""
    script = keep(tmp_path / "scripts", f"#!/bin/sh\n{line}\nhostname\n".encode())
    signer = new_signer()
    spec = Spec(
        job="slurm:ann/r",
        cluster="slurm",
        argv=("sbatch", *options, str(script)),
        cwd=str(tmp_path),
        log_paths=(),
        checkpoint_directory="",
        policy="",
        armed=True,
        user=getpass.getuser(),
        environment={"A": "1"},
    )
    topics = Topics([signer.sign(spec)])
    replace_open_specs(tmp_path, cast(Any, topics), cast(Any, topics), signer)
    (closed,) = topics.published
    assert closed.environment == {}
    assert environment_of(closed) == {"A": "1", "SLURM_JOB_NAME": name}
