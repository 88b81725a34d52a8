"""Exports a decide worker's decisions, and the budget of each job."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from midwatch.agents.decide.fold import state_of
from midwatch.agents.decide.reasons import reason_word
from midwatch.agents.decide.state import DecideState
from midwatch.streams.records import Decision, Incident, codec
from midwatch.streams.records.identity import is_job
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import Meter, Reading
from midwatch.streams.worker.app import App
from midwatch.streams.worker.incoming import RawRecord
from midwatch.streams.worker.stateful import StatefulAgent
from midwatch.streams.worker.tables.batch import Batch
from midwatch.streams.worker.tables.ids import input_offset

RESTARTED_MS = 7 * 86_400_000
"""Decide does not hear that a job ended well. After a restart its series last so long."""


class DecideMetrics:
    """The counters of decisions, and the gauges of budgets."""

    def __init__(self, app: App, agent: StatefulAgent, meter: Meter) -> None:
        self._agent = agent
        self._meter = meter
        self._settings = app.settings.telemetry
        self._decisions = app.settings.topic_names.decisions
        meter.watch(names.BUDGET_LEFT, self._left)
        meter.watch(names.RESTARTS, self._restarts)
        meter.watch(names.JOBS_LEFT_OUT, self._left_out)

    def landed(self, batch: Batch, records: Sequence[RawRecord]) -> None:
        """Count what a written batch decides. What was sent before a loss of Redis is not among it."""
        inputs = {record.offset: record for record in records}
        for entry, send in batch.outgoing:
            if send.topic != self._decisions or send.value is None:
                continue
            decision = codec.decode(send.value)
            if isinstance(decision, Decision):
                labels = {names.ACTION: decision.action, names.REASON: reason_word(decision)}
                self._meter.add(names.DECISIONS, 1, labels)
                self._time(inputs.get(input_offset(entry)))

    def _time(self, record: RawRecord | None) -> None:
        incident = codec.decode(record.value) if record is not None and record.value else None
        if isinstance(incident, Incident) and incident.state == "settled":
            since_ms = incident.line_ms if incident.line_ms is not None else incident.opened_ms
            self._meter.record(names.DECIDE_TIME, time.time() - since_ms / 1000)

    def _left(self) -> Iterable[Reading]:
        return [
            (max(0, last.restart_limit - used), {names.RUN: state.job})
            for state in self._jobs()[: self._settings.runs]
            if (last := state.last) is not None and last.restart_limit is not None
            for used in (sum(state.restarts.values()),)
        ]

    def _restarts(self) -> Iterable[Reading]:
        jobs = self._jobs()[: self._settings.runs]
        return [(sum(state.restarts.values()), {names.RUN: state.job}) for state in jobs]

    def _left_out(self) -> Iterable[Reading]:
        return [(max(0, len(self._jobs()) - self._settings.runs), {})]

    def _jobs(self) -> list[DecideState]:
        found: list[DecideState] = []
        for partition in tuple(self._agent.owned()):
            copies = self._agent.table.copies(partition)
            states = [state_of(fields) for key, fields in copies.items() if is_job(key) and fields]
            found += [state for state in states if self._is_shown(state)]
        return sorted(found, key=lambda state: state.job)

    def _is_shown(self, state: DecideState) -> bool:
        if state.last is None or not state.job:
            return False
        age_ms = time.time() * 1000 - state.last.at_ms
        kept_ms = RESTARTED_MS if state.last.action == "restart" else self._settings.forget * 1000
        return age_ms <= kept_ms
