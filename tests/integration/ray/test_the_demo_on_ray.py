"""`midwatch demo --cluster ray` as a newcomer starts it: a rescue on a head that it starts itself."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from integration.ray.played import demo
from midwatch.agents.local.demo.judge import read_ledger
from processes import working_in


def test_without_ray_it_says_how_to_get_it(tmp_path: Path) -> None:
    shown = demo(tmp_path / "work", PATH="/usr/bin:/bin")
    assert (shown.returncode, "ray[default]" in shown.stderr) == (3, True)


@pytest.mark.integration
def test_it_shows_a_rescue_on_a_head_of_its_own(the_demo: tuple[Path, Future[CompletedProcess[str]]]) -> None:
    work, ended = the_demo
    shown = ended.result()
    assert shown.returncode == 0, shown.stdout + shown.stderr
    ledger = read_ledger((work / "checkpoints" / "ledger.jsonl").read_text())
    assert [start.first_step for start in ledger.starts] == [1, 41]
    assert "raysubmit_" in shown.stdout
    assert working_in(work) == []
