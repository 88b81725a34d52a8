"""Exports what a match worker reads and finds: lines, their age, hits of rules, and captures as gauges."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping

from midwatch.agents.rulesets.bundles import CompiledBundle
from midwatch.streams.records import Chunk, Hits, Progress
from midwatch.streams.settings.schema import TelemetrySettings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Meter, Reading

Place = tuple[str, str, str]
"""The job, the rule and the capture of one gauge."""


class MatchMetrics:
    """Counts one chunk at a time, and keeps the latest number of each exported capture.

    `clock`: seconds that only rise. By it a job is forgotten after its last line.
    """

    def __init__(
        self, settings: TelemetrySettings, meter: Meter, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._meter = meter
        self._clock = clock
        self._captured: dict[Place, float] = {}
        self._losses: dict[str, float] = {}
        self._checkpoints: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._bundle: CompiledBundle | None = None
        self._exports: Mapping[str, tuple[str, ...]] = {}
        meter.watch(names.CAPTURED, self._captures)
        meter.watch(names.PRINTED_LOSS, lambda: self._of_jobs(self._losses))
        meter.watch(names.CHECKPOINT_AT, lambda: self._of_jobs(self._checkpoints))

    def matched(self, chunk: Chunk, hits: Hits | None, watched: CompiledBundle) -> None:
        """Note one chunk and what was found in it."""
        self._meter.add(names.LINES, sum(section.lines - section.context for section in chunk.sections))
        read_at = max((section.read_at for section in chunk.sections), default=0.0)
        self._meter.record(names.LINE_AGE, time.time() - read_at)
        exports = self._exports_of(watched)
        if exports or (hits is not None and hits.progress):
            self._note(chunk.origin.job)
        for hit in hits.hits if hits is not None else ():
            self._meter.add(names.HITS, 1, {names.RULE: hit.rule})
            for capture in exports.get(hit.rule, ()):
                self._take((chunk.origin.job, hit.rule, capture), hit.captures.get(capture, ""))
        for further in hits.counts if hits is not None else ():
            self._meter.add(names.HITS, further.count, {names.RULE: further.rule})

        for columns in hits.progress if hits is not None else ():
            self._follow(chunk.origin.job, columns)

    def _follow(self, job: str, columns: Progress) -> None:
        """Keep the last finite loss, and when a checkpoint began last."""
        if columns.phase == "checkpoint" and columns.times:
            self._checkpoints[job] = max(self._checkpoints.get(job, 0.0), columns.times[-1])
        for text in reversed(columns.losses):
            if (loss := _finite(text)) is not None:
                self._losses[job] = loss
                return

    def _exports_of(self, watched: CompiledBundle) -> Mapping[str, tuple[str, ...]]:
        """The exported captures by rule."""
        if watched is not self._bundle:
            self._bundle = watched
            self._exports = {rule.name: rule.export for rule in watched.rules.rules if rule.export}
        return self._exports

    def _note(self, job: str) -> None:
        """A job's captures are kept while it prints, and for a while after its last line."""
        self._seen.pop(job, None)
        self._seen[job] = self._clock()
        if len(self._seen) > self._settings.runs:
            self._forget(next(iter(self._seen)))

    def _take(self, place: Place, text: str) -> None:
        number = _finite(text)  # a capture may hold words: a metric never does
        if number is not None and place[0] in self._seen:
            self._captured[place] = number

    def _forget(self, job: str) -> None:
        for kept in (self._seen, self._losses, self._checkpoints):
            kept.pop(job, None)
        self._captured = {place: number for place, number in self._captured.items() if place[0] != job}

    def _shown(self) -> set[str]:
        oldest = self._clock() - self._settings.forget
        return {job for job, at in dict(self._seen).items() if at >= oldest}

    def _of_jobs(self, kept: Mapping[str, float]) -> Iterable[Reading]:
        shown = self._shown()
        return [(number, {names.RUN: job}) for job, number in sorted(dict(kept).items()) if job in shown]

    def _captures(self) -> Iterable[Reading]:
        shown = self._shown()
        return [
            (number, {names.RUN: job, names.RULE: rule, names.CAPTURE: capture})
            for (job, rule, capture), number in sorted(dict(self._captured).items())
            if job in shown
        ]


def _finite(text: str) -> float | None:
    """A printed number; None for words and for what is not finite."""
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
