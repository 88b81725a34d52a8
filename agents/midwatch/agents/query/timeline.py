"""The timeline of one job, made for a person from the records of the topics. Pure: records in, value out.

Nothing here judges or decides: a timeline repeats what detect, decide and the executor wrote.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from midwatch.agents import activity
from midwatch.agents.query.attempt_numbers import attempt_numbers
from midwatch.streams.records import (
    Command,
    Decision,
    Finding,
    Forwarded,
    Heartbeat,
    Hits,
    Incident,
    Outcome,
    PersonAct,
    SchedulerFact,
    Snapshot,
    Spec,
    SpecEvent,
    Verdict,
    codec,
)
from midwatch.streams.records.identity import native_id
from midwatch.streams.records.incidents import RESUMED

_MISSED = 3
"""A job counts as unheard after so many intervals without a heartbeat."""
_REQUEUED = "REQUEUED"  # SLURM's word for a start that it ended to start the job again


@dataclass(frozen=True, slots=True)
class Timed:
    """A record of the job and when it was written."""

    at_ms: int
    record: object


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: its incident, and the decisions, commands and outcomes about it.

    `outcomes`: each with its time in milliseconds.
    """

    number: int
    incident: Incident | None = None
    decisions: tuple[Decision, ...] = ()
    commands: tuple[Command, ...] = ()
    outcomes: tuple[tuple[int, Outcome], ...] = ()
    findings: tuple[Finding, ...] = ()  # the latest of each kind, open or clear

    @property
    def restarted(self) -> Outcome | None:
        """The last outcome `done` of a restart; None if nothing started a new attempt in its place."""
        done = [o for _, o in self.outcomes if o.action == "restart" and o.state == "done"]
        return done[-1] if done else None

    @property
    def last_step(self) -> int | None:
        """The last step before its end; None if unknown."""
        return self.incident.verdict.step if self.incident else None


@dataclass(frozen=True, slots=True)
class Timeline:
    """All that the topics hold on one job.

    `steps`: records in the sequence of time, without heartbeats, hits, specs and snapshots. `spec`: what
    detect knows of the spec. `signed`: the spec itself. `act`: the latest act that armed or disarmed the
    job. `real`: another record than a person's act names the job; an act may name a job that nobody has.
    `incarnation`: of the latest attempt; "" if no record names it.
    """

    job: str
    attempts: tuple[Attempt, ...] = ()
    incarnation: str = ""
    steps: tuple[Timed, ...] = ()
    spec: SpecEvent | None = None
    signed: Spec | None = None
    act: PersonAct | None = None
    real: bool = False
    native_ids: frozenset[str] = field(default_factory=frozenset)
    last_heartbeat_ms: int | None = None
    heartbeat_interval: float = 0.0  # seconds, as in the last heartbeat
    heartbeat_of: str = ""  # the incarnation of the last heartbeat
    last_step: int | None = None
    last_fact: SchedulerFact | None = None
    nodes: frozenset[str] = field(default_factory=frozenset)

    @property
    def policy(self) -> str | None:
        """The policy that judges it; None without a spec."""
        known = self.spec or self.signed
        return known.policy if known else None

    @property
    def armed_by_spec(self) -> bool:
        """Whether its start armed it."""
        known = self.spec or self.signed
        return known is not None and known.armed

    @property
    def armed(self) -> bool:
        """Whether its start or a person's latest act armed it. The watch must also be in act mode."""
        if self.act is not None and self.act.act == "disarm":
            return False
        return self.armed_by_spec or self.act is not None

    @property
    def latest(self) -> Attempt | None:
        """The attempt with the highest number."""
        return self.attempts[-1] if self.attempts else None

    @property
    def standing(self) -> Incident | None:
        """The incident that still needs somebody: of the latest attempt, not healthy and not restarted.

        None after a person's cancel, and while an end has no cause and may yet turn out to be healthy.
        """
        if self.latest is None or self.latest.restarted or self.cancelled_by:
            return None
        incident = self.latest.incident
        if incident is None or incident.state == "withdrawn" or incident.verdict.state == "healthy":
            return None
        return None if incident.state == "ended" and incident.verdict.state == "unknown" else incident

    @property
    def cancelled_by(self) -> str:
        """Who cancelled the latest attempt; "" if nobody did."""
        incident = self.latest.incident if self.latest else None
        fact = incident.scheduler if incident and incident.scheduler else self.last_fact
        return fact.by_person if fact and fact.ended and self._is_latest(fact.incarnation) else ""

    @property
    def open_findings(self) -> tuple[Finding, ...]:
        """The open findings of the latest attempt."""
        return tuple(f for f in self.latest.findings if f.open) if self.latest else ()

    @property
    def blind(self) -> Finding | None:
        """The open finding `blind`: silence proves nothing. None if there is none."""
        return next((f for f in self.open_findings if f.kind == "blind"), None)

    def same_as(self, attempt: Attempt) -> tuple[int, ...]:
        """The earlier attempts that failed of the same type, by the same rule and in the same mode."""
        if attempt.incident is None or attempt.incident.verdict.state != "failed":
            return ()
        kind = _kind(attempt.incident.verdict)
        earlier = (a for a in self.attempts if a.number < attempt.number and a.incident is not None)
        return tuple(a.number for a in earlier if a.incident and _kind(a.incident.verdict) == kind)

    @property
    def resumed(self) -> Finding | None:
        """Where the latest attempt went on, while that attempt has no incident; None if nothing tells."""
        if self.latest is None or self.latest.incident is not None:
            return None
        return next((f for f in self.latest.findings if f.kind == RESUMED), None)

    def line_of(self, step: Timed) -> str | None:
        """The line of one of `steps`, with what the timeline knows besides; None if it is no step."""
        record = step.record
        if not isinstance(record, Outcome):
            return activity.line(record, step.at_ms)
        command = next((c for a in self.attempts for c in a.commands if c.id == record.command), None)
        last_step = next((a.last_step for a in self.attempts if a.number == record.attempt), None)
        return activity.line(record, step.at_ms, command=command, last_step=last_step)

    def state_at(self, now_ms: int) -> str:
        """One word for a list of jobs. It is never `running` once the heartbeats have stopped."""
        if self.standing:
            return _word_of(self.standing)
        life = self._life(now_ms)
        incident = self.latest.incident if self.latest else None
        if self.latest and self.latest.restarted:
            return life if life == "running" else "restarted"
        if incident is not None and incident.state in ("ended", "settled"):
            return "cancelled" if self.cancelled_by else "ended"
        if self.blind:
            return "blind"
        if incident is None and any(attempt.restarted for attempt in self.attempts[-2:-1]):
            return life if life in ("running", "ended", "cancelled") else "restarted"
        return life

    def lives_at(self, now_ms: int, besides: str) -> bool:
        """Whether another incarnation than `besides` runs or waits, by the last record of it.

        A start that only a spec event names counts as living.
        """
        lives = {self.heartbeat_of: True} if self._heard(now_ms) else {}
        for step in self.steps:
            match step.record:
                case SchedulerFact():
                    lives[step.record.incarnation] = not step.record.ended
                case SpecEvent():
                    lives.setdefault(step.record.incarnation, True)
        return any(living for incarnation, living in lives.items() if incarnation not in ("", besides))

    def _life(self, now_ms: int) -> str:
        """The life of the latest attempt by its own records. Those of an older one say nothing about it."""
        fact = self.last_fact
        current = fact is not None and self._is_latest(fact.incarnation)
        if fact is not None and current and fact.ended:
            return "cancelled" if fact.by_person else "ended"
        if self.last_heartbeat_ms is not None and self._is_latest(self.heartbeat_of):
            return "running" if self._heard(now_ms) else "unheard"
        if fact is None or not current:
            return "queued" if fact is not None and fact.new == _REQUEUED else "known"
        return "queued" if fact.waits else "running"

    def _heard(self, now_ms: int) -> bool:
        """Whether a heartbeat came within the last intervals."""
        last = self.last_heartbeat_ms
        return last is not None and now_ms - last <= _MISSED * 1000 * self.heartbeat_interval

    def _is_latest(self, incarnation: str) -> bool:
        return not self.incarnation or incarnation in ("", self.incarnation)


def _kind(verdict: Verdict) -> tuple[object, ...]:
    return verdict.state, verdict.mode, verdict.error_type, verdict.rule


def _word_of(standing: Incident) -> str:
    """The word for an incident that needs somebody. Until it has settled, its verdict may change."""
    if standing.state == "settled":
        return "ended" if standing.verdict.state == "unknown" else "failed"
    return "failing"


def timelines(records: Iterable[Timed]) -> dict[str, Timeline]:
    """The timelines of all jobs in the records, by job, in the sequence of their first records."""
    grouped: dict[str, list[Timed]] = defaultdict(list)
    for timed in records:
        if job := job_of(timed.record):
            grouped[job].append(timed)
    return {job: timeline(job, timed) for job, timed in grouped.items()}


def job_of(record: object) -> str:
    """The job that a record is about; "" for those of no job."""
    record = _unwrapped(record)
    if isinstance(record, Hits | Heartbeat):
        return record.origin.job
    return str(getattr(record, "job", ""))


def timeline(job: str, records: Sequence[Timed]) -> Timeline:
    """The timeline of one job from its records, which must be in the sequence of time."""
    attempts: dict[int, Attempt] = {}
    so_far = Timeline(job)
    steps: list[Timed] = []
    seen: set[bytes] = set()
    ids: set[str] = set()
    for timed in records:
        record = _unwrapped(timed.record)
        if not isinstance(record, PersonAct | Snapshot):
            so_far = replace(so_far, real=True) if not so_far.real else so_far
            ids |= _native_ids(record)
        # A record can come twice: detect forwards outcomes, and a killed agent sends its outbox again.
        if not isinstance(record, Heartbeat | Hits):
            if (encoded := codec.encode(record)) in seen:
                continue
            seen.add(encoded)
        match record:
            case Heartbeat() | Hits():
                so_far = _sign_of_life(so_far, timed.at_ms, record)
                continue
            case SpecEvent():
                # A new start replaces an earlier `arm`, but not a person's `disarm`.
                act = so_far.act if so_far.act is not None and so_far.act.act == "disarm" else None
                so_far = replace(so_far, spec=record, act=act)
            case Spec():
                so_far = replace(so_far, signed=record)
                continue
            case Snapshot():
                continue
            case SchedulerFact():
                so_far = replace(so_far, last_fact=record)
            case PersonAct() if record.act in ("arm", "disarm"):
                so_far = replace(so_far, act=record)
            case Incident() | Finding() | Decision() | Command() | Outcome():
                attempts[record.attempt] = _add(
                    attempts.get(record.attempt, Attempt(record.attempt)), timed.at_ms, record
                )
        steps.append(Timed(timed.at_ms, record))
    unwrapped = [_unwrapped(timed.record) for timed in records]
    numbers = attempt_numbers(unwrapped)
    latest = max((*attempts, *numbers.values()), default=0)
    if latest:
        attempts.setdefault(latest, Attempt(latest))
    return replace(
        _with_kept_signs(so_far, unwrapped),
        attempts=tuple(attempts[n] for n in sorted(attempts)),
        incarnation=next((name for name, number in numbers.items() if number == latest), ""),
        steps=tuple(steps),
        native_ids=frozenset(ids - {""}),
    )


def _unwrapped(record: object) -> object:
    return record.record if isinstance(record, Forwarded) else record


def _add(attempt: Attempt, at_ms: int, record: Incident | Finding | Decision | Command | Outcome) -> Attempt:
    match record:
        case Incident():
            return replace(attempt, incident=record)
        case Finding():
            others = tuple(f for f in attempt.findings if f.kind != record.kind)
            return replace(attempt, findings=(*others, record))
        case Decision():
            return replace(attempt, decisions=(*attempt.decisions, record))
        case Command():
            return replace(attempt, commands=(*attempt.commands, record))
        case Outcome():
            return replace(attempt, outcomes=(*attempt.outcomes, (at_ms, record)))


def _sign_of_life(timeline: Timeline, at_ms: int, record: Heartbeat | Hits) -> Timeline:
    nodes = timeline.nodes | {record.origin.node}
    if isinstance(record, Heartbeat):
        timeline = replace(timeline, nodes=nodes, last_heartbeat_ms=at_ms, heartbeat_interval=record.interval)
        return replace(timeline, heartbeat_of=record.origin.incarnation)
    steps = [step for progress in record.progress for step in progress.steps[-1:] if step >= 0]
    return replace(timeline, nodes=nodes, last_step=max(steps) if steps else timeline.last_step)


def _with_kept_signs(seen: Timeline, records: Sequence[object]) -> Timeline:
    """The timeline, with the last step and heartbeat that detect's records keep where it has seen none."""
    step, heard_ms, of = None, None, ""
    for record in records:
        match record:
            case Snapshot():
                step = record.step if record.step is not None else step
            case Incident():
                step = record.verdict.step if record.verdict.step is not None else step
                if record.heard_ms is not None:
                    heard_ms, of = record.heard_ms, record.incarnation
            case Finding() if record.open:
                step = record.step if record.step is not None else step
                heard_ms = record.heard_ms if record.heard_ms is not None else heard_ms
    if seen.last_heartbeat_ms is None and heard_ms is not None:
        seen = replace(seen, last_heartbeat_ms=heard_ms, heartbeat_of=of)
    return seen if seen.last_step is not None else replace(seen, last_step=step)


def find_jobs(name: str, known: dict[str, Timeline]) -> tuple[str, ...]:
    """The jobs that `name` may mean: by whole name, else by run, else by a scheduler's id of any attempt."""
    real = {job: timeline for job, timeline in known.items() if timeline.real}
    if name in real:
        return (name,)
    if by_run := tuple(job for job in real if run_of(job) == name):
        return by_run
    return tuple(job for job, timeline in real.items() if name in timeline.native_ids)


def run_of(job: str) -> str:
    """The last part of a job's whole name."""
    return job.rpartition("/")[2]


def _native_ids(record: object) -> set[str]:
    """The scheduler's ids that a record holds; "" may be among them."""
    match record:
        case SchedulerFact():
            return {record.native_id}
        case Outcome():
            return {record.old_native_id, record.new_native_id}
        case Incident() | SpecEvent():
            incarnation = record.incarnation
        case Heartbeat() | Hits():
            incarnation = record.origin.incarnation
        case _:
            return set()
    return {native_id(incarnation)} if ":" in incarnation else set()
