"""Opens the telemetry of a process. While it is off, nothing of the SDK is imported."""

from __future__ import annotations

import importlib.util
import os
import socket

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.settings.schema import Settings
from midwatch.streams.telemetry.meter import Export, Identity

PROCESSES = ("match", "detect", "decide", "executor", "trace", "messages")
"""In the order of their ports: the first one has the port of the setting."""


def identity(settings: Settings, process: str) -> Identity:
    """The identity of one process of this installation."""
    name = settings.worker.instance_id or f"{socket.gethostname()}:{os.getpid()}"
    return Identity(f"midwatch-{process}", settings.topics.prefix, name)


def scrape_address(settings: Settings, process: str) -> tuple[str, int] | None:
    """Where this process answers scrapes; None if the settings name no address, and for a shipper."""
    if not settings.telemetry.prometheus or process not in PROCESSES:
        return None
    host, _, port = settings.telemetry.prometheus.rpartition(":")
    return host.strip("[]"), int(port) + PROCESSES.index(process)


def open_telemetry(settings: Settings, process: str) -> Export | None:
    """The telemetry of a process; None while it is off.

    Raises:
        ConfigurationError: the settings name an address, and the extra `otel` is not installed.
    """
    if not settings.telemetry.on:
        return None
    require_extra()
    from midwatch.streams.telemetry.sdk import SdkExport

    return SdkExport(settings.telemetry, identity(settings, process), scrape_address(settings, process))


def require_extra() -> None:
    """Raises ConfigurationError if the OpenTelemetry SDK is not installed."""
    if not has_extra():
        raise ConfigurationError(
            "telemetry is on, and the OpenTelemetry SDK is not installed",
            where="telemetry",
            remedy="install midwatch[otel], or remove telemetry.otlp and telemetry.prometheus",
        )


def has_extra() -> bool:
    """Whether the OpenTelemetry SDK is installed. It imports no more than the package's first module."""
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False
