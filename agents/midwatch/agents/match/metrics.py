"""Exports what a match worker reads and finds: lines, their age, and hits of rules."""

from __future__ import annotations

import time

from midwatch.streams.records import Chunk, Hits
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Meter


class MatchMetrics:
    """Counts one chunk at a time."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def matched(self, chunk: Chunk, hits: Hits | None) -> None:
        """Note one chunk and what was found in it."""
        self._meter.add(names.LINES, sum(section.lines - section.context for section in chunk.sections))
        read_at = max((section.read_at for section in chunk.sections), default=0.0)
        self._meter.record(names.LINE_AGE, time.time() - read_at)
        for hit in hits.hits if hits is not None else ():
            self._meter.add(names.HITS, 1, {names.RULE: hit.rule})
        for further in hits.counts if hits is not None else ():
            self._meter.add(names.HITS, further.count, {names.RULE: further.rule})
