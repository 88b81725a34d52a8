"""Shippers on the other nodes of a SLURM job: one srun step beside the script's steps.

SLURM runs the batch script on the first node alone. The step starts our shim on each other node.
It overlaps all other steps and requests no GPU. There the shim ships that node's logs until its
standard input ends. The input stays open while the batch script runs: srun holds it open, and also
closes it when the first node dies.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from midwatch.agents.schedulers.wrapping import SHIM

# The shim's script: it lives until its standard input ends, whatever signal the scheduler sends.
_UNTIL_THE_END = ("sh", "-c", "trap '' HUP INT TERM USR1 USR2; exec cat > /dev/null")
# srun finds its job by these. Every other SLURM_* of the batch script would become an option of our step.
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
    """The srun line of the step on all nodes but the first: no GPU, no memory share, no CPU of its own."""
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
    """The environment of the batch script, less the variables that would steer srun."""
    return {k: v for k, v in environment.items() if k in _KEPT or not k.startswith(_STEERING)}


class OtherNodes:
    """Keeps the step running: starts it again when it dies."""

    def __init__(
        self, argv: list[str], environment: Mapping[str, str], log: Path | None, note: Callable[[str], None]
    ) -> None:
        self._argv = argv
        self._environment = step_environment(environment)
        self._log = log
        self._note = note
        self._process: subprocess.Popen[bytes] | None = None
        self._next_start = 0.0

    def look(self) -> None:
        """Starts the step if it does not run and its pause is over. Never waits."""
        now = time.monotonic()
        if self._process is not None and self._process.poll() is not None:
            self._note(f"the srun step of the shippers ended with status {self._process.returncode}")
            self._close()
            self._process, self._next_start = None, now + _PAUSE_S
        if self._process is None and now >= self._next_start:
            self._next_start = now + _PAUSE_S
            self._process = self._start()

    def end(self) -> None:
        """Closes the shims' standard input: the script has ended, so they drain and exit."""
        self._close()

    def ended(self) -> bool:
        """Whether the step has ended on all nodes."""
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """Ends a step that did not end in time."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> subprocess.Popen[bytes] | None:
        output = self._log.open("ab") if self._log else None
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
