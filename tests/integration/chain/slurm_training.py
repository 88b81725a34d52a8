"""The toy training as a job of a real SLURM, under a whole midwatch."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from integration.chain.installation import Installation, Job, installation, midwatch
from midwatch.agents.local.demo.judge import TrainingLedger, read_ledger
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.agents.query.inquiry import ask_all
from midwatch.agents.query.timeline import run_of
from midwatch.streams.records import Outcome
from slurm_lab.lab import Lab

SOON = 150.0


@contextlib.contextmanager
def slurm_installation(directory: Path, stack: Endpoints, slurm: Lab) -> Iterator[Installation]:
    """All processes are ready; the executor talks to the lab. No job is left running behind it."""
    try:
        with installation(directory, stack) as made:
            made.environment |= {name: slurm.environment[name] for name in ("SLURM_CONF", "PATH")}
            for name in ("match", "detect", "decide", "executor"):
                made.start(name)
            made.ready()
            yield made
    finally:
        slurm.clear()


@dataclass
class Training:
    """A toy training, submitted through `midwatch run -- sbatch`."""

    watch: Installation
    directory: Path
    faults: tuple[str, ...] = ()
    iterations: int = 60
    name: str = field(default_factory=lambda: f"job-{secrets.token_hex(4)}")

    def submit(self, *options: str) -> Job:
        """`options` are sbatch's own."""
        return self.run(f"--log={self.directory}/logs", "--", "sbatch", *options, str(self.script()))

    def run(self, *words: str) -> Job:
        """`midwatch run` with these words, armed."""
        about = ("--json", f"--job={self.name}", "--act", f"--checkpoint-dir={self.directory}/checkpoints")
        done = subprocess.run(
            [*midwatch("run", *about), *words],
            cwd=self.directory,
            env=self.watch.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return Job(self.watch, self.name, self.directory, ())

    def script(self, *, beside: str = "") -> Path:
        """A batch script of the training; `beside` is what a person starts in it before."""
        for each in ("checkpoints", "logs"):
            (self.directory / each).mkdir(parents=True, exist_ok=True)
        script = self.directory / "train.sh"
        faults = " ".join(f"--fault={fault}" for fault in self.faults)
        # Under SLURM the trainer would be one rank of a step; a batch script starts all of them itself.
        script.write_text(
            "#!/bin/bash\n#SBATCH --job-name=twin\n"
            f"#SBATCH --output={self.directory}/slurm-%j.out\n{beside}"
            f"env -u SLURM_PROCID -u SLURM_NTASKS {sys.executable} -m midwatch.agents.drill.trainer"
            f" --checkpoint-dir={self.directory}/checkpoints --log-dir={self.directory}/logs --ranks=4"
            f" --iterations={self.iterations} --iteration-ms=50 --save-every=10 --collective-timeout-ms=1500"
            f" {faults}\n"
        )
        return script

    def ledger(self) -> TrainingLedger:
        """What the training itself says."""
        file = self._ledger()
        return read_ledger(file.read_text()) if file.exists() else TrainingLedger()

    def noted(self, what: str) -> list[dict[str, Any]]:
        """The ledger's lines of one kind."""
        lines = self._ledger().read_text().splitlines() if self._ledger().exists() else []
        rows = [json.loads(line) for line in lines]
        return [row for row in rows if row["event"] == what]

    def native_ids(self) -> list[str]:
        """As which jobs of SLURM it was started, in order."""
        return [start.native_id for start in self.ledger().starts]

    def _ledger(self) -> Path:
        return self.directory / "checkpoints" / "ledger.jsonl"


def decided(job: Job) -> list[str]:
    """What was decided of the job's incidents, in order."""
    return [d.action for d in job.decisions() if d.incident]


def shown(job: Job) -> tuple[str, int]:
    """The state and the attempt that `midwatch jobs` shows of the job."""
    now = int(time.time() * 1000)
    told = ask_all(job.installation.settings, now - 3_600_000, now).timelines
    (one,) = (timeline for timeline in told.values() if run_of(timeline.job) == job.name)
    return one.state_at(now), one.latest.number if one.latest else 0


def restarted(job: Job) -> Outcome | None:
    """The executor's word on the first restart."""
    story = job.story()
    return next((a.restarted for a in story.attempts if a.restarted), None) if story else None
