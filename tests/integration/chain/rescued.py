"""A job whose validation runs out of memory, and its rescue by `midwatch resume`, on any scheduler."""

from __future__ import annotations

import getpass
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from integration.chain.installation import Installation, Job, midwatch
from integration.chain.resuming import why
from midwatch.streams.records import PersonAct
from processes import wait_for

TRAINER = Path(__file__).with_name("rescued_trainer.py")
SOON = 120.0
PACE = {"local": 0.02, "slurm": 0.02, "ray": 0.3}  # on Ray another process must see the job live
CONFIG = """\
# of our team
output: {output}
data:
  val_batch_size: 32  # as large as the training's
  workers: [1, 2]
resume_from: null   # set it to go on
seconds_a_step: {pace}
"""


@dataclass
class Rescue:
    """One job, unarmed. Its configuration lies in `directory/code`, its checkpoints in `directory/out`."""

    watch: Installation
    directory: Path
    job: Job

    @property
    def starts(self) -> list[str]:
        """The first step and the batch size of each start."""
        file = self.directory / "out" / "starts"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def user(self) -> str:
        return getpass.getuser()

    def resume(self, *options: str, answer: str = "Y\n") -> subprocess.CompletedProcess[str]:
        """What a person types, and answers."""
        command = [sys.executable, "-P", "-m", "midwatch", "resume", self.job.name, *options]
        return subprocess.run(
            command,
            env=self.watch.environment,
            input=answer,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )


def fail(
    watch: Installation, directory: Path, on: Literal["local", "slurm", "ray"] = "local", *armed: str
) -> Rescue:
    """The job has run out of memory, and the watch has decided not to restart it."""
    code, out = directory / "code", directory / "out"
    code.mkdir(parents=True)
    (code / "train.yaml").write_text(CONFIG.format(output=out, pace=PACE[on]))
    name = f"rescued-{secrets.token_hex(3)}"
    trainer = [sys.executable, str(TRAINER), "--config=train.yaml"]
    if on == "slurm":
        script = directory / "train.sh"
        output = f"#SBATCH --output={directory}/slurm-%j.out"
        script.write_text(f'#!/bin/bash\n#SBATCH --ntasks=1\n{output}\ncd {code}\nexec {trainer[0]} "$@"\n')
        trainer = ["sbatch", str(script), *trainer[1:-1], f"--config={code}/train.yaml"]
    elif on == "ray":
        trainer = ["ray", "job", "submit", f"--working-dir={code}", "--", *trainer]
    about = ("--json", f"--job={name}", f"--checkpoint-dir={out}", *armed)
    done = subprocess.run(
        [*midwatch("run", *about), "--", *trainer],
        cwd=code,
        env=watch.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    job = Job(watch, name, directory, ())
    wait_for(lambda: _actions(job)[-1:] == ["stop"], "it is decided", SOON, seen=job.records)
    return Rescue(watch, directory, job)


def check_why(rescue: Rescue, cluster: str) -> None:
    """Cause, quantities, place, who is to blame, and the key to change with both values."""
    text = why(rescue.job)
    for quantity in ("size 2.00 GiB", "capacity 79.11 GiB", "free 1.02 GiB"):
        assert quantity in text
    assert "step 10, phase evaluation" in text
    assert "blame software: the job asked for more memory than the device has" in text
    assert "change data.val_batch_size in train.yaml, 32 → 16:" in text
    assert f"midwatch resume {cluster}:{rescue.user}/{rescue.job.name} --set data.val_batch_size=16" in text


def check_rescue(rescue: Rescue) -> subprocess.CompletedProcess[str]:
    """The rescue happened once, from the checkpoint, with the change, and is known for a person's."""
    done = rescue.resume("--set", "val_batch_size=16")
    assert done.returncode == 0, done.stdout + done.stderr
    wait_for(lambda: len(rescue.starts) == 2, "it runs again", SOON)
    assert rescue.starts == ["1 32", "6 16"]
    assert "is started again as" in done.stdout
    act = [act for act in rescue.job.all_of(PersonAct) if act.act == "resume"][-1]
    assert act.parameters["set data.val_batch_size"] == "32 → 16"
    wait_for(lambda: _actions(rescue.job)[-1:] == ["none"], "its good end is seen", SOON)
    return done


def _actions(job: Job) -> list[str]:
    return [decision.action for decision in job.decisions() if decision.incident]
