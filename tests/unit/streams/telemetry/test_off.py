"""While telemetry is off, no process imports the SDK. Where it cannot be had, it says what to install."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from bench.telemetry import NOISE
from house.tree import ROOT
from midwatch.shippers.sending.exported import exported
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records import Origin
from midwatch.streams.settings.schema import Settings, TelemetrySettings
from midwatch.streams.telemetry.start import open_telemetry, scrape_address
from unit.upgrade.filled import filled

PROCESSES = (
    "midwatch.agents.match.worker",
    "midwatch.agents.detect.worker",
    "midwatch.agents.decide.worker",
    "midwatch.agents.executor.service",
    "midwatch.agents.trace.worker",
    "midwatch.agents.messages.worker",
    "midwatch.shippers.sidecar",
)


def test_no_process_imports_the_sdk() -> None:
    """redis' client imports OpenTelemetry's API and metrics by itself; exporters and traces nobody does."""
    imports = "\n".join(f"import {module}" for module in PROCESSES)
    ours = (
        "midwatch.streams.telemetry.sdk",
        "opentelemetry.exporter",
        "opentelemetry.sdk.trace",
        "prometheus",
    )
    code = f"import sys\n{imports}\nprint([m for m in sys.modules if m.startswith({ours!r})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_was_measured_is_that_off_costs_nothing() -> None:
    measured = json.loads((ROOT / "bench" / "results" / "telemetry.json").read_text())
    assert measured["ratio"]["off"] <= 1 + NOISE


def test_off_is_the_default_and_opens_nothing() -> None:
    assert open_telemetry(Settings(), "match") is None


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(Settings(), telemetry=TelemetrySettings(prometheus="127.0.0.1:9464"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="OpenTelemetry SDK is not installed"):
        open_telemetry(settings, "match")


def test_a_shipper_without_the_extra_ships_and_exports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(Settings(), telemetry=TelemetrySettings(otlp="http://127.0.0.1:9"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with exported(settings, filled(Origin), lambda: None):
        pass


@pytest.mark.parametrize(("process", "port"), [("match", 9464), ("detect", 9465), ("trace", 9468)])
def test_each_process_has_its_own_port(process: str, port: int) -> None:
    settings = replace(Settings(), telemetry=TelemetrySettings(prometheus="127.0.0.1:9464"))
    assert scrape_address(settings, process) == ("127.0.0.1", port)
