"""Exports an executor's commands, and whether it sees the schedulers."""

from __future__ import annotations

import time
from collections.abc import Mapping

from midwatch.agents.reporter import Reporter
from midwatch.streams.records import Command, Outcome
from midwatch.streams.settings.schema import Settings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Export, Health
from midwatch.streams.telemetry.start import open_telemetry
from midwatch.streams.worker.exported import refused, sent

STALE_S = 30.0


class ExecutorMetrics:
    """What the executor exports. Its methods cost nothing while telemetry is off."""

    def __init__(self, settings: Settings, reporter: Reporter) -> None:
        self._export: Export | None = open_telemetry(settings, "executor")
        self._turned_at = 0.0
        self._open = 0
        self._blind: Mapping[str, str] = {}
        if self._export is None:
            return
        meter = self._export.meter
        group = f"{settings.topics.prefix}.executor"
        meter.watch(names.SENT, lambda: sent(reporter.counters, group))
        meter.watch(names.REFUSED, lambda: refused(reporter.counters))
        meter.watch(names.READY, lambda: [(int(self.health().ready), {})])
        meter.watch(names.ALIVE, lambda: [(self._turned_at, {})] if self._turned_at else [])
        meter.watch(names.COMMANDS_OPEN, lambda: [(self._open, {})])
        reporter.observer = self._reported
        self._export.serve(self.health)

    def turned(self, open_commands: int, blind: Mapping[str, str]) -> None:
        """Note one turn of the main loop. `blind`: schedulers that do not answer, with the reason."""
        if self._export is not None:
            self._turned_at, self._open, self._blind = time.time(), open_commands, dict(blind)

    def health(self) -> Health:
        """Whether the executor turns, and whether all its schedulers answer."""
        reasons = [
            f"the scheduler {name} does not answer: {why}" for name, why in sorted(self._blind.items())
        ]
        if not self._turned_at:
            reasons.append("it has not begun yet")
        elif time.time() - self._turned_at > STALE_S:
            reasons.append(f"it stands still for {time.time() - self._turned_at:.0f} s")
        return Health(tuple(reasons))

    def close(self) -> None:
        """Push what is left."""
        if self._export is not None:
            self._export.close()

    def _reported(self, record: object, command: Command | None) -> None:
        if self._export is None or not isinstance(record, Outcome):
            return
        meter, labels = self._export.meter, {names.ACTION: record.action, names.OUTCOME: record.state}
        meter.add(names.OUTCOMES, 1, labels)
        if command is not None and record.state in ("done", "failed"):
            meter.record(names.COMMAND_TIME, time.time() - command.not_before_ms / 1000, labels)
