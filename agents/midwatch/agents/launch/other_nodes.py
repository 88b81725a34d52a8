"""Shippers on the other nodes of a SLURM job: one step of our own beside the script's.

The batch script runs on the first node alone. A step that overlaps all others and asks for nothing takes
our shim to each of the other nodes, where it ships that node's own logs until its standard input ends:
srun holds that open for as long as the batch script runs, and also closes it when the first node dies.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from midwatch.agents.schedulers.wrapping import SHIM

# It lives until its standard input ends, whatever signal the scheduler sends to the job's processes.
_UNTIL_THE_END = ("sh", "-c", "trap '' HUP INT TERM USR1 USR2; exec cat > /dev/null")
# srun finds its job by these; every other SLURM_* of the batch script would become an option of our step.
_KEPT = frozenset(
    {"SLURM_JOB_ID", "SLURM_CONF", "SLURM_CLUSTER_NAME", "SLURM_WORKING_CLUSTER", "SLURM_JOB_USER"}
)
_STEERING = ("SLURM_", "SRUN_", "SLURMD_")
_PAUSE_S = 15.0


def nodes_of(environment: Mapping[str, str]) -> int:
    """How many nodes SLURM gave to this job; 1 outside of SLURM, and in a step, which has its own."""
    text = environment.get("SLURM_JOB_NUM_NODES", "")
    return int(text) if text.isdigit() and "SLURM_JOB_ID" in environment else 1


def step_argv(*, job: str, nodes: int, node_logs: tuple[str, ...]) -> list[str]:
    """The step on all nodes but the first: no GPU, no share of the memory, no CPU of its own."""
    others = nodes - 1
    logs = [word for path in node_logs for word in ("--node-log", path)]
    return [
        *("srun", "--overlap", "--relative=1", f"--nodes={others}", f"--ntasks={others}"),
        *("--ntasks-per-node=1", "--cpus-per-task=1", "--mem=0", "--gres=none", "--cpu-bind=none"),
        *("--kill-on-bad-exit=0", "--wait=0", "--no-kill", "--job-name=midwatch-ship", "--quiet"),
        *(sys.executable, *SHIM, "--alone", "--job", job, "--nodes", str(nodes), *logs, "--"),
        *_UNTIL_THE_END,
    ]


def step_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The batch script's, less what would steer srun."""
    return {k: v for k, v in environment.items() if k in _KEPT or not k.startswith(_STEERING)}


class OtherNodes:
    """The step, started again when it dies."""

    def __init__(
        self, argv: list[str], environment: Mapping[str, str], words: Path | None, note: Callable[[str], None]
    ) -> None:
        self._argv = argv
        self._environment = step_environment(environment)
        self._words = words
        self._note = note
        self._process: subprocess.Popen[bytes] | None = None
        self._next_start = 0.0

    def look(self) -> None:
        """Starts it if it is not there and its pause is over."""
        now = time.monotonic()
        if self._process is not None and self._process.poll() is not None:
            self._note(f"the step of shippers ended with status {self._process.returncode}")
            self._close()
            self._process, self._next_start = None, now + _PAUSE_S
        if self._process is None and now >= self._next_start:
            self._next_start = now + _PAUSE_S
            self._process = self._start()

    def end(self) -> None:
        """Tells them that the script has ended: they drain, and leave."""
        self._close()

    def gone(self) -> bool:
        """Whether every one of them has left."""
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """For those that did not leave in time."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> subprocess.Popen[bytes] | None:
        output = self._words.open("ab") if self._words else None
        try:
            return subprocess.Popen(
                self._argv,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=output or subprocess.DEVNULL,
                stderr=output or subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self._note(f"srun cannot be started: {error.strerror}")
            return None
        finally:
            if output:
                output.close()

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
