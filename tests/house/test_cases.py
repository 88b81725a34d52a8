"""`make unit` plays fewer made-up cases and no test that needs a service; `make test` plays all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from house.cases import cases
from house.tree import ROOT


@pytest.mark.parametrize(("quick", "played"), [("1", 50), ("0", 300), ("", 300)])
def test_a_quick_run_plays_a_sixth(quick: str, played: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUICK", quick)
    assert cases(300) == played
    assert cases(1) == 1


def test_a_quick_run_leaves_out_the_tests_that_ask_for_a_service() -> None:
    collect = [str(Path(sys.executable).with_name("pytest")), "--collect-only", "-q"]
    done = subprocess.run(
        [*collect, "tests/house/test_compose.py", "tests/house/test_packaging.py"],
        cwd=ROOT,
        env=os.environ | {"QUICK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "test_every_command_is_one_of_the_command_line" in done.stdout
    assert "test_the_topics_are_made_before_anything_reads_them" not in done.stdout
    assert "test_the_base_install_is_small" not in done.stdout
