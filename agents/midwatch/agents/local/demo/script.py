"""The command line of the demo's training, and the demo's directories. Pure."""

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


RAY_SUBMIT = ("ray", "job", "submit", "--")


@dataclass(frozen=True, slots=True)
class Stage:
    """One demo: its directories and its job."""

    directory: Path
    job: JobName

    @property
    def prefix(self) -> str:
        """The prefix of its topics, which keeps them apart from others on the same Kafka."""
        return re.sub(r"[^A-Za-z0-9.-]", "-", f"demo-{self.directory.parent.name}-{self.directory.name}")

    @property
    def state(self) -> Path:
        """The watch's own state directory."""
        return self.directory / "watch"

    @property
    def checkpoints(self) -> Path:
        """The training's checkpoints and its ledger."""
        return self.directory / "checkpoints"

    @property
    def logs(self) -> Path:
        """One file for each rank."""
        return self.directory / "logs"

    @property
    def ledger(self) -> Path:
        """The judge. The training writes it, and nothing that watches the training does."""
        return self.checkpoints / "ledger.jsonl"

    def training(self) -> list[str]:
        """The command of a training with eight ranks.

        The first attempt dies of a collective's timeout. In the second attempt the loss spikes. Then one rank
        runs out of memory, and the others print timeouts about it.
        """
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
