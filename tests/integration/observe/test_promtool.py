"""The committed alerts under promtool: well formed, and firing when they should."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from house.tree import ROOT
from integration.observe.prometheus import program
from midwatch.agents.grafana.alerts import ALERTS

OBSERVE = ROOT / "observe"
CASES = Path(__file__).with_name("alert_cases.yml")


def promtool(*arguments: str, here: Path = OBSERVE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), *arguments], cwd=here, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    "arguments",
    [("check", "rules", "prometheus/alerts.yml"), ("check", "config", "prometheus/prometheus.yml")],
)
def test_the_committed_files_are_well_formed(arguments: tuple[str, ...]) -> None:
    done = promtool(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.capability("X-08", "X-14")
def test_each_alert_fires_when_it_should_and_not_before(tmp_path: Path) -> None:
    shutil.copy(OBSERVE / "prometheus" / "alerts.yml", tmp_path)
    shutil.copy(CASES, tmp_path)
    done = promtool("test", "rules", CASES.name, here=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    text = str(yaml.safe_load(CASES.read_text()))
    assert [alert.name for alert in ALERTS if alert.name not in text] == []


def test_the_example_of_alertmanager_is_well_formed() -> None:
    done = subprocess.run(
        [program("amtool"), "check-config", str(OBSERVE / "alertmanager" / "alertmanager.yml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
