"""A job of `resuming_trainer`, through `midwatch run`, on any scheduler; and what `why` says of it."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

from integration.chain.installation import Installation, Job, midwatch

TRAINER = Path(__file__).with_name("resuming_trainer.py")


def begin(watch: Installation, directory: Path, habit: str, *options: str, slurm: bool = False) -> Job:
    """The job runs, armed; its checkpoints lie in `directory/checkpoints`."""
    directory.mkdir()
    name = f"{habit.replace('_', '-')}-{secrets.token_hex(3)}"
    trainer = [sys.executable, str(TRAINER), str(directory / "checkpoints"), habit]
    if slurm:
        script = directory / "train.sh"
        output = f"#SBATCH --output={directory}/slurm-%j.out"
        script.write_text(f"#!/bin/bash\n#SBATCH --ntasks=1\n{output}\n{' '.join(trainer)}\n")
        trainer = ["sbatch", str(script)]
    about = ("--json", f"--job={name}", "--act", f"--checkpoint-dir={directory}/checkpoints", *options)
    done = subprocess.run(
        [*midwatch("run", *about), "--", *trainer],
        cwd=directory,
        env=watch.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return Job(watch, name, directory, ())


def why(job: Job) -> str:
    """What `midwatch why` prints of the job, with each run of blanks as one."""
    done = subprocess.run(
        midwatch("why", job.name),
        env={**job.installation.environment, "COLUMNS": "2000"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return " ".join(done.stdout.split())


def ended(job: Job, *actions: str) -> bool:
    """Whether just these were decided of its incidents, and nothing runs any more."""
    return [d.action for d in job.decisions() if d.incident] == list(actions)
