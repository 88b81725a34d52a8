"""The toy training as a job on `local`, under a whole midwatch."""

from __future__ import annotations

import secrets
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from integration.chain.installation import Installation, Job, midwatch
from midwatch.agents.local.demo.judge import TrainingLedger, read_ledger
from processes import end_processes_of

PROCESSES = ("match", "detect", "decide", "executor")


@dataclass
class Training:
    """One training; `options` are the trainer's own."""

    watch: Installation
    directory: Path
    options: tuple[str, ...] = ()
    name: str = field(default_factory=lambda: f"job-{secrets.token_hex(4)}")

    def start(self, *asked: str) -> Job:
        """Through `midwatch run`, armed."""
        for each in ("checkpoints", "logs"):
            (self.directory / each).mkdir(parents=True)
        about = ("--json", f"--job={self.name}", "--act", f"--log={self.directory}/logs", *asked)
        command = midwatch("run", *about, f"--checkpoint-dir={self.directory}/checkpoints")
        trainer = (
            sys.executable, "-m", "midwatch.agents.drill.trainer",
            f"--checkpoint-dir={self.directory}/checkpoints", f"--log-dir={self.directory}/logs",
            "--ranks=2", "--fault-rank=1", "--collective-timeout-ms=1500", *self.options,
        )  # fmt: skip
        done = subprocess.run(
            [*command, "--", *trainer],
            cwd=self.directory,
            env=self.watch.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return Job(self.watch, self.name, self.directory, ())

    def ledger(self) -> TrainingLedger:
        """What the training itself says."""
        file = self.directory / "checkpoints" / "ledger.jsonl"
        return read_ledger(file.read_text()) if file.exists() else TrainingLedger()

    def end(self) -> None:
        """No process of it is left behind."""
        end_processes_of(self.name)
