"""The clusters on which the latency bench lets jobs die: this machine, a real Ray head, a real SLURM."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ray_lab.lab import RayLab
from ray_lab.packages import obtain as obtain_ray
from ray_lab.world import variables
from slurm_lab.fixture import booted
from slurm_lab.lab import Lab
from slurm_lab.packages import CONTROLLER
from slurm_lab.packages import obtain as obtain_slurm

JOB = Path(__file__).with_name("latency_job.py")

Words = Callable[[Path], Sequence[str]]
"""From a job's ledger to what follows `midwatch run`: options, `--`, and the command line."""


@dataclass(frozen=True)
class Clusters:
    """How to submit the mortal job on each, and the variables by which midwatch finds them."""

    words: Mapping[str, Words]
    environment: Mapping[str, str] = field(default_factory=dict)
    head: RayLab | None = None
    slurm: Lab | None = None


def _local(ledger: Path) -> Sequence[str]:
    return ("--", sys.executable, str(JOB), "mortal", str(ledger))


def _on_ray(ledger: Path) -> Sequence[str]:
    return ("--", "ray", "job", "submit", "--", sys.executable, str(JOB), "mortal", str(ledger))


def _on_slurm(ledger: Path) -> Sequence[str]:
    script = ledger.with_suffix(".sh")
    output = ledger.with_suffix(".out")
    script.write_text(
        f"#!/bin/sh\n#SBATCH --output={output} --open-mode=append\n"
        f"exec {sys.executable} {JOB} mortal {ledger}\n"
    )
    return (f"--log={output}", "--", "sbatch", str(script))


@contextmanager
def running(names: Sequence[str]) -> Iterator[Clusters]:
    """The named ones of `local`, `ray` and `slurm`, up. Raises RuntimeError where one cannot be had."""
    words: dict[str, Words] = {"local": _local} if "local" in names else {}
    environment: dict[str, str] = {}
    head: RayLab | None = None
    lab: Lab | None = None
    ends: list[Callable[[], None]] = []
    try:
        if "ray" in names:
            if reason := obtain_ray():
                raise RuntimeError(reason)
            head = RayLab(Path(tempfile.mkdtemp(prefix="rl-")))
            ends.append(head.close)
            head.boot()
            environment |= variables(head)
            words["ray"] = _on_ray
        if "slurm" in names:
            if reason := obtain_slurm(CONTROLLER):
                raise RuntimeError(reason)
            lab = booted()
            ends.append(lab.close)
            environment |= {name: lab.environment[name] for name in ("SLURM_CONF", "PATH")}
            words["slurm"] = _on_slurm
        yield Clusters(words, environment, head, lab)
    finally:
        for end in reversed(ends):
            end()
