"""What the demo's training is told to do, and where. Pure."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from midwatch.streams.records.identity import JobName

RUN = "toy"
SAVE_EVERY = 20
TIMEOUT_AT, SPIKE_AT, MEMORY_AT = 50, 70, 110
_ITERATIONS = 200


@dataclass(frozen=True, slots=True)
class Stage:
    """One demo: its directories and its job."""

    directory: Path
    job: JobName

    @property
    def prefix(self) -> str:
        """Of its topics: a Kafka that is in use keeps its own apart."""
        return re.sub(r"[^A-Za-z0-9.-]", "-", f"demo-{self.directory.parent.name}-{self.directory.name}")

    @property
    def state(self) -> Path:
        """The watch's own state directory."""
        return self.directory / "watch"

    @property
    def checkpoints(self) -> Path:
        """Where the training saves, and keeps its ledger."""
        return self.directory / "checkpoints"

    @property
    def logs(self) -> Path:
        """One file for each rank."""
        return self.directory / "logs"

    @property
    def ledger(self) -> Path:
        """The judge: written by the training, and by nothing that watches it."""
        return self.checkpoints / "ledger.jsonl"

    def training(self) -> list[str]:
        """Eight ranks. The first attempt dies of a collective's timeout; in the second the loss spikes, then
        one rank runs out of memory and the others print timeouts about it."""
        return [
            sys.executable,
            "-P",
            "-m",
            "midwatch.agents.drill.trainer",
            f"--checkpoint-dir={self.checkpoints}",
            f"--log-dir={self.logs}",
            "--ranks=8",
            f"--iterations={_ITERATIONS}",
            "--iteration-ms=50",
            f"--save-every={SAVE_EVERY}",
            "--collective-timeout-ms=2000",
            f"--fault=nccl@{TIMEOUT_AT}:1",
            f"--fault=spike@{SPIKE_AT}:2",
            f"--fault=oom@{MEMORY_AT}:2",
        ]
