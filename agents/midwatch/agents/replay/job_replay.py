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
    as_it_stands,
    chunks,
    origin_of,
    undated,
)
from midwatch.agents.replay.pipeline import JobWatch, PipelineStep, step
from midwatch.agents.rulesets.bundles import CompiledBundle
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
    """What the watch would have said of one job, and what had to be assumed to say it."""

    job: str
    verdict: Verdict
    decision: Decision
    findings: tuple[Finding, ...]
    evidence: tuple[Hit, ...]
    hits: tuple[Hit, ...]
    assumed: tuple[str, ...]


def replay(
    job: str, files: Sequence[LogFile], watched: CompiledBundle, book: Rulebook, limits: WatchLimits
) -> Replayed:
    """All files of one job. They are folded by the time of their lines, whatever their order here."""
    records: list[Hits] = []
    for index, file in enumerate(files):
        times = PrintedTimes(undated(file, files))
        for chunk in chunks(job, file, index):
            found = match(chunk, watched.rules, watched.hash, 0, when=times, any_line=watched.any_line)
            if found is not None:
                records.append(found)
    run = _JobReplay(job, book, limits)
    merged = _merged(job, watched, records)
    if records:
        run.take(merged)
    hits = merged.hits
    if run.watch.job.state.held:
        done = _failed(run, hits)
        return replace(done, verdict=_with_the_files_own_line(done.verdict, files))
    return _went_well(run, hits)


class _JobReplay:
    """The watch over one job as it goes; time is a count, because nothing here waits."""

    def __init__(self, job: str, book: Rulebook, limits: WatchLimits) -> None:
        self.job, self.book, self.limits = job, book, limits
        self.watch = JobWatch()
        self.now_ms = 0
        self.findings: dict[str, Finding] = {}
        self.incident: Incident | None = None
        self.decision: Decision | None = None

    def take(self, event: Event) -> None:
        self.now_ms += 1
        done: PipelineStep = step(
            self.watch, self.job, event, self.now_ms, limits=self.limits, book=self.book
        )
        self.watch = done.watch
        for record in done.records:
            if isinstance(record, Finding) and record.open:
                self.findings.setdefault(record.kind, record)
            elif isinstance(record, Incident) and record.state == "settled":
                self.incident = record
        for decision in done.decisions:
            if decision.incident:
                self.decision = decision


def _with_the_files_own_line(verdict: Verdict, files: Sequence[LogFile]) -> Verdict:
    """A person who looks for the root line in the file finds it, whatever colours it was printed in."""
    number = verdict.root_line_number
    file = next((file for file in files if file.path == verdict.root_file), None)
    if file is None or number is None:
        return verdict
    return replace(verdict, root_line=as_it_stands(file, number, verdict.root_line))


def _merged(job: str, watched: CompiledBundle, records: Sequence[Hits]) -> Hits:
    """One record of them all: within a record, lines of several files are folded by their time."""
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
            reason="assumed: a failure stands in the log",
            cluster="replay",
        )
    )
    run.take(Heartbeat(origin_of(run.job), 1, 0.0, 0.0, 5.0, True, 0, final=True))
    incident, decision = run.incident, run.decision
    if incident is None or decision is None:
        raise AssertionError("an end whose last node gave its final beat settles, and is decided")
    assumed = (
        "the run ended, with an exit code that nobody knows",
        "the whole budget of restarts is left",
        f"the policy is {decision.policy}",
        "silence cannot be seen in a file: no stall is looked for",
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


def _went_well(run: _JobReplay, hits: tuple[Hit, ...]) -> Replayed:
    state = run.watch.job.state
    seen = state.succeeded or state.trained or state.step is not None
    verdict = Verdict(
        state="healthy" if seen else "unknown",
        mode="success" if state.succeeded else None,
        error_type="",
        step=state.step,
        phase=state.phase if seen else None,
        bundle=state.bundle,
    )
    reason = "no failure stands in the log" if seen else "nothing in the log is known to the rules"
    decision = Decision(run.job, 1, "", 0, "none", run.book.default_policy, reason, run.now_ms, False)
    assumed = ("silence cannot be seen in a file: no stall is looked for",)
    return Replayed(run.job, verdict, decision, tuple(run.findings.values()), (), hits, assumed)
