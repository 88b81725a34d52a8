"""Exports what a match worker reads and finds: lines, their age, hits of rules, and captures as gauges."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping

from midwatch.agents.rulesets.bundles import CompiledBundle
from midwatch.streams.records import Chunk, Hits
from midwatch.streams.settings.schema import TelemetrySettings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Meter, Reading

Place = tuple[str, str, str]
"""The job, the rule and the capture of one gauge."""


class MatchMetrics:
    """Counts one chunk at a time, and keeps the latest number of each exported capture."""

    def __init__(self, settings: TelemetrySettings, meter: Meter) -> None:
        self._settings = settings
        self._meter = meter
        self._captured: dict[Place, float] = {}
        self._seen: dict[str, float] = {}
        self._bundle: CompiledBundle | None = None
        self._exports: Mapping[str, tuple[str, ...]] = {}
        meter.watch(names.CAPTURED, self._captures)

    def matched(self, chunk: Chunk, hits: Hits | None, watched: CompiledBundle) -> None:
        """Note one chunk and what was found in it."""
        self._meter.add(names.LINES, sum(section.lines - section.context for section in chunk.sections))
        read_at = max((section.read_at for section in chunk.sections), default=0.0)
        self._meter.record(names.LINE_AGE, time.time() - read_at)
        exports = self._exports_of(watched)
        if exports:
            self._note(chunk.origin.job)
        for hit in hits.hits if hits is not None else ():
            self._meter.add(names.HITS, 1, {names.RULE: hit.rule})
            for capture in exports.get(hit.rule, ()):
                self._take((chunk.origin.job, hit.rule, capture), hit.captures.get(capture, ""))
        for further in hits.counts if hits is not None else ():
            self._meter.add(names.HITS, further.count, {names.RULE: further.rule})

    def _exports_of(self, watched: CompiledBundle) -> Mapping[str, tuple[str, ...]]:
        """The exported captures by rule."""
        if watched is not self._bundle:
            self._bundle = watched
            self._exports = {rule.name: rule.export for rule in watched.rules.rules if rule.export}
        return self._exports

    def _note(self, job: str) -> None:
        """A job's captures are kept while it prints, and for a while after its last line."""
        self._seen.pop(job, None)
        self._seen[job] = time.monotonic()
        if len(self._seen) > self._settings.runs:
            self._forget(next(iter(self._seen)))

    def _take(self, place: Place, text: str) -> None:
        try:
            number = float(text.replace(",", ""))
        except ValueError:
            return  # a capture may hold words: a metric never does
        if math.isfinite(number) and place[0] in self._seen:
            self._captured[place] = number

    def _forget(self, job: str) -> None:
        self._seen.pop(job, None)
        self._captured = {place: number for place, number in self._captured.items() if place[0] != job}

    def _captures(self) -> Iterable[Reading]:
        oldest = time.monotonic() - self._settings.forget
        shown = {job for job, at in dict(self._seen).items() if at >= oldest}
        return [
            (number, {names.RUN: job, names.RULE: rule, names.CAPTURE: capture})
            for (job, rule, capture), number in sorted(dict(self._captured).items())
            if job in shown
        ]
