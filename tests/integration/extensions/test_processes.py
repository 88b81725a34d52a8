"""A foreign package, installed as users do it: what it adds to a process, and only by its enabled parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foreign_package import install, variables

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has 1.00 GiB free"
BOTH = ("extensions.detectors=grad_norm", "extensions.policies=patient")
HASHES = """
import sys
from midwatch.agents.rulesets.draft import read_draft
from midwatch.streams.settings.file import load_settings
from midwatch.streams.settings.reader import Assignment
for word in sys.argv[1:]:
    name, _, value = word.partition("=")
    options = [Assignment(tuple(name.split(".")), value, "test")]
    print(read_draft(load_settings(None, environment={}, options=options)).hash)
"""


def _step(number: int, norm: float) -> str:
    fields = (
        f" iteration {number:8d}/  100000",
        f"consumed samples: {number * 8:12d}",
        "elapsed time per iteration (ms): 100.0",
        "learning rate: 1.0E-04",
        "global batch size:     8",
        "lm loss: 2.000000E+00",
        "loss scale: 1.0",
        f"grad norm: {norm:.3f}",
        "number of skipped iterations:   0",
        "number of nan iterations:   0 |",
    )
    return " | ".join(fields)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A run whose gradient's norm stays high, and that runs out of memory."""
    norms = [1.0] * 5 + [50.0] * 4
    lines = [_step(number, norm) for number, norm in enumerate(norms, 1)]
    file = tmp_path / "train.log"
    file.write_text("\n".join([*lines, OOM]) + "\n")
    return file


def _python(installed: Path | None, where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MIDWATCH_")}
    return subprocess.run(
        [sys.executable, "-P", *words],
        cwd=where,
        env=kept | (variables(installed) if installed else {}),
        capture_output=True,
        text=True,
        check=False,
    )


def _replay(log: Path, installed: Path | None, *options: str, policy: str = "") -> dict[str, Any]:
    words = [f"--set={option}" for option in options] + ([f"--policy={policy}"] if policy else [])
    done = _python(installed, log.parent, "-m", "midwatch", "replay", log.name, "--json", *words)
    assert done.returncode == 1, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_what_the_settings_enable_judges_a_replayed_log(log: Path, installed: Path) -> None:
    said = _replay(log, installed, *BOTH, policy="patient")
    (finding,) = said["findings"]
    assert (finding["kind"], finding["detail"]) == (
        "grad_norm",
        "the gradient's norm is 50.000 at step 8",
    )
    assert said["verdict"]["error_type"] == "oom"
    assert said["decision"]["action"] == "restart"
    assert said["decision"]["policy"] == "patient"
    assert "may have been another's" in said["decision"]["reason"]


def test_a_package_that_is_merely_installed_changes_nothing(log: Path, installed: Path) -> None:
    without = _replay(log, None)
    assert _replay(log, installed) == without
    assert (without["findings"], without["decision"]["action"]) == ([], "stop")


def _hashes(installed: Path, where: Path, *options: str) -> list[str]:
    """Of the bundles of these settings, each by itself."""
    done = _python(installed, where, "-c", HASHES, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_name_and_version_of_detectors_and_policies_are_part_of_the_bundles_hash(
    tmp_path: Path, installed: Path
) -> None:
    newer = install(tmp_path / "newer", {'version: str = "1"': 'version: str = "2"'})
    plain, with_scheduler, *older = _hashes(
        installed, tmp_path, "extensions.detectors=", "extensions.schedulers=shelf", *BOTH
    )
    assert with_scheduler == plain
    hashes = {plain, *older, *_hashes(newer, tmp_path, *BOTH)}
    assert len(hashes) == 5


def test_a_name_that_nobody_offers_ends_the_command_with_exit_code_3(log: Path, installed: Path) -> None:
    option = "--set=extensions.detectors=of_nobody"
    done = _python(installed, log.parent, "-m", "midwatch", "replay", log.name, option)
    assert done.returncode == 3, done.stderr
    assert "extensions.detectors: no installed package offers 'of_nobody'" in done.stderr
