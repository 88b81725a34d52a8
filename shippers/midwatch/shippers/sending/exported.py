"""Exports a shipper's backlog and lines by OTLP, where telemetry is on and the extra `otel` is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from midwatch.shippers.sending.heartbeat import HeartbeatFacts
from midwatch.streams.records import LINES_READ, Origin
from midwatch.streams.settings.schema import Settings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Reading
from midwatch.streams.telemetry.start import has_extra, open_telemetry

Facts = Callable[[], HeartbeatFacts | None]
"""What the last heartbeat said; None before the first one."""


@contextlib.contextmanager
def exported(settings: Settings, origin: Origin, facts: Facts) -> Iterator[None]:
    """Export while the block runs. A node without the extra ships as ever and exports nothing."""
    if not settings.telemetry.otlp or not has_extra():
        yield
        return
    export = open_telemetry(settings, "ship")
    if export is None:
        yield
        return
    labels = {names.RUN: origin.job, names.NODE: origin.node}

    def backlog() -> list[Reading]:
        known = facts()
        return [] if known is None else [(known.backlog, labels)]

    def lines() -> list[Reading]:
        known = facts()
        return [] if known is None else [(known.samples.get(LINES_READ, 0), {})]

    export.meter.watch(names.BACKLOG, backlog)
    export.meter.watch(names.LINES_SHIPPED, lines)
    try:
        yield
    finally:
        export.close()
