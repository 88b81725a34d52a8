"""`midwatch demo --cluster ray` as a newcomer starts it: a rescue on a head that it starts itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded_stack import variables_of
from house.parts import require
from midwatch.agents.local.demo.judge import read_ledger
from midwatch.agents.local.embedded.stack import Endpoints
from processes import working_in
from ray_lab.packages import FOLDER, obtain


def _demo(directory: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "midwatch", "demo", "--cluster=ray", f"--directory={directory}"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MIDWATCH_")} | variables
    return subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_without_ray_it_says_how_to_get_it(tmp_path: Path) -> None:
    shown = _demo(tmp_path / "work", PATH="/usr/bin:/bin")
    assert (shown.returncode, "ray[default]" in shown.stderr) == (3, True)


@pytest.mark.integration
def test_it_shows_a_rescue_on_a_head_of_its_own(tmp_path: Path, stack: Endpoints) -> None:
    reason = obtain()
    require("a real Ray", not reason, reason)
    services = variables_of(stack)
    path = f"{FOLDER / 'bin'}:{os.environ['PATH']}"
    shown = _demo(tmp_path / "work", "--patience=150", PATH=path, **services)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    ledger = read_ledger((tmp_path / "work" / "checkpoints" / "ledger.jsonl").read_text())
    assert [start.first_step for start in ledger.starts] == [1, 41]
    assert "raysubmit_" in shown.stdout
    assert working_in(tmp_path / "work") == []
