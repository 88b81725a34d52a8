"""Exports what became of messages, and which channels fail."""

from __future__ import annotations

from midwatch.agents.messages.delivery.lanes import Lanes
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Meter


def export_lanes(meter: Meter, lanes: Lanes) -> None:
    """Counts each try of these lanes from now on. A channel's name comes from the settings."""

    def tried(channel: str, outcome: str) -> None:
        meter.add(names.NOTICES, 1, {names.CHANNEL: channel, names.OUTCOME: outcome})

    lanes.observer = tried
    meter.watch(
        names.CHANNEL_FAILS,
        lambda: [(int(fails), {names.CHANNEL: name}) for name, fails in lanes.failing.items()],
    )
