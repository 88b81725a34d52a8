"""One job's log files through match, detect and decide in one process. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.replay.log_files import (
    INCARNATION,
    LogFile,
    PrintedTimes,
    as_printed,
    chunks,
    origin_of,
    undated,
)
from midwatch.agents.replay.pipeline import JobWatch, PipelineStep, step
from midwatch.agents.rulesets.bundles import CompiledBundle
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.base import Detectors
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import (
    Decision,
    Event,
    Finding,
    Heartbeat,
    Hit,
    Hits,
    Incident,
    SchedulerFact,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Replayed:
    """The verdict and decision of the watch on one job. `assumed`: the assumptions behind them."""

    job: str
    verdict: Verdict
    decision: Decision
    findings: tuple[Finding, ...]
    evidence: tuple[Hit, ...]
    hits: tuple[Hit, ...]
    assumed: tuple[str, ...]


def replay(
    job: str,
    files: Sequence[LogFile],
    watched: CompiledBundle,
    book: Rulebook,
    limits: WatchLimits,
    *,
    detectors: Detectors = DETECTORS,
) -> Replayed:
    """Watch all files of one job. The time of the lines counts, and the order of `files` does not."""
    records: list[Hits] = []
    for index, file in enumerate(files):
        times = PrintedTimes(undated(file, files))
        for chunk in chunks(job, file, index):
            found = match(chunk, watched.rules, watched.hash, 0, when=times, any_line=watched.any_line)
            if found is not None:
                records.append(found)
    run = _JobReplay(job, book, limits, detectors)
    merged = _merged(job, watched, records)
    if records:
        run.take(merged)
    hits = merged.hits
    if run.watch.job.state.held:
        failed = _failed(run, hits)
        return replace(failed, verdict=_with_line_as_printed(failed.verdict, files))
    return _without_failure(run, hits)


class _JobReplay:
    """The watch over one job while it runs. Its clock counts events, because nothing here waits."""

    def __init__(self, job: str, book: Rulebook, limits: WatchLimits, detectors: Detectors) -> None:
        self.job, self.book, self.limits, self.detectors = job, book, limits, detectors
        self.watch = JobWatch()
        self.now_ms = 0
        self.findings: dict[str, Finding] = {}
        self.incident: Incident | None = None
        self.decision: Decision | None = None

    def take(self, event: Event) -> None:
        self.now_ms += 1
        result: PipelineStep = step(
            self.watch,
            self.job,
            event,
            self.now_ms,
            limits=self.limits,
            book=self.book,
            detectors=self.detectors,
        )
        self.watch = result.watch
        for record in result.records:
            if isinstance(record, Finding) and record.open:
                self.findings.setdefault(record.kind, record)
            elif isinstance(record, Incident) and record.state == "settled":
                self.incident = record
        for decision in result.decisions:
            if decision.incident:
                self.decision = decision


def _with_line_as_printed(verdict: Verdict, files: Sequence[LogFile]) -> Verdict:
    """The verdict with the root line as the file holds it, colours included, so that a search finds it."""
    number = verdict.root_line_number
    file = next((file for file in files if file.path == verdict.root_file), None)
    if file is None or number is None:
        return verdict
    return replace(verdict, root_line=as_printed(file, number, verdict.root_line))


def _merged(job: str, watched: CompiledBundle, records: Sequence[Hits]) -> Hits:
    """All records as one, because detect orders lines by time only within one record."""
    return Hits(
        origin=origin_of(job),
        bundle=watched.hash,
        hits=tuple(hit for record in records for hit in record.hits),
        counts=tuple(count for record in records for count in record.counts),
        progress=tuple(column for record in records for column in record.progress),
        ends={name: end for record in records for name, end in record.ends.items()},
        stops=tuple(stop for record in records for stop in record.stops),
    )


def _failed(run: _JobReplay, hits: tuple[Hit, ...]) -> Replayed:
    run.take(
        SchedulerFact(
            job=run.job,
            incarnation=INCARNATION,
            native_id="file",
            old="running",
            new="ended",
            ended=True,
            reason="assumed: the log holds a failure",
            cluster="replay",
        )
    )
    run.take(Heartbeat(origin_of(run.job), 1, 0.0, 0.0, 5.0, True, 0, final=True))
    incident, decision = run.incident, run.decision
    if incident is None or decision is None:
        raise AssertionError(
            "detect settles an end after the last node's final heartbeat, and decide decides it"
        )
    assumed = (
        "the run ended, and its exit code is unknown",
        "no restart of the budget is spent",
        f"the policy is {decision.policy}",
        "a file shows no silence, so replay looks for no stall",
    )
    return Replayed(
        job=run.job,
        verdict=incident.verdict,
        decision=replace(decision, reason=decision.reason.partition("; observing only")[0]),
        findings=tuple(run.findings.values()),
        evidence=incident.evidence,
        hits=hits,
        assumed=assumed,
    )


def _without_failure(run: _JobReplay, hits: tuple[Hit, ...]) -> Replayed:
    state = run.watch.job.state
    known = state.succeeded or state.trained or state.step is not None
    verdict = Verdict(
        state="healthy" if known else "unknown",
        mode="success" if state.succeeded else None,
        error_type="",
        step=state.step,
        phase=state.phase if known else None,
        bundle=state.bundle,
    )
    reason = "the log holds no failure" if known else "no rule knows a line of the log"
    decision = Decision(run.job, 1, "", 0, "none", run.book.default_policy, reason, run.now_ms, False)
    assumed = ("a file shows no silence, so replay looks for no stall",)
    return Replayed(run.job, verdict, decision, tuple(run.findings.values()), (), hits, assumed)
