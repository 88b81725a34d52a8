"""What a job's records in `decisions` make people hear: a fold of one job, with the time as argument. Pure.

An incident and the decision about it are one notice. Findings of the same attempt belong to it. Those
that still wait to be told are named in it; those that come later are not told on their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from msgspec import UNSET

from midwatch.agents.messages import wording
from midwatch.agents.messages.alarms import Alarm, Alarms, Pace, cleared, dropped, opened, pruned, timed
from midwatch.agents.messages.notice import Notice
from midwatch.streams.records import Decision, Finding, Forwarded, Incident, Outcome, PersonAct, SpecEvent
from midwatch.streams.records.incidents import RESUMED

_INCIDENT, _FINDING = "/incident/", "/finding/"


@dataclass(frozen=True, slots=True)
class TellingState:
    """What the messages remember of a job. `detail` is that of its last finding."""

    version: int = 1
    job: str = ""
    alarms: Mapping[str, Alarm] = field(default_factory=dict)
    incident: Incident | None = None
    detail: str = ""

    def due_ms(self) -> int | None:
        """When something is to be told although no record arrives; None without such a time."""
        return Alarms(self.job, self.alarms).due_ms()


@dataclass(frozen=True, slots=True)
class Told:
    """The state after a record or a timer, and the notices that it gives."""

    state: TellingState
    notices: tuple[Notice, ...] = ()


def tell_due(state: TellingState, now_ms: int, pace: Pace) -> Told:
    """The notices whose time has come."""
    return _told(state, timed(Alarms(state.job, state.alarms), now_ms, pace), now_ms, pace)


def tell(state: TellingState, record: Decision | Forwarded, now_ms: int, pace: Pace) -> Told:
    """The notices that one record gives."""
    body = record.record if isinstance(record, Forwarded) else record
    state = replace(state, job=body.job)
    alarms = Alarms(state.job, state.alarms)
    match body:
        case Incident():
            state = replace(state, incident=replace(body, evidence=(), rivals=UNSET, counts=(), spec=None))
            alarms = _earlier_over(alarms, body.attempt, f"Attempt {body.attempt} ran after it.", now_ms)
        case Decision():
            if body.incident:
                alarms = _decided(alarms, body, state.incident, now_ms, pace)
            elif not (state.detail and body.reason.startswith(state.detail)):
                held = Alarm(f"{body.job}/held", f"{body.job}/held", body.attempt, wording.of_hold(body))
                alarms = opened(alarms, replace(held, reminds=True), now_ms, pace)
        case Finding():
            state = replace(state, detail=body.detail)
            alarms = _found(alarms, body, now_ms, pace)
        case Outcome() if body.state == "done":
            alarms = _over(alarms, body.attempt, wording.of_outcome(body, now_ms), now_ms)
        case SpecEvent():
            alarms = _watched(alarms, body, now_ms, pace)
        case PersonAct() if body.act == "arm":
            for kind in ("held", f"{_FINDING[1:]}poisoned"):
                alarms = cleared(alarms, f"{body.job}/{kind}", "A person armed it again.", now_ms)
    return _told(state, alarms, now_ms, pace)


def _told(state: TellingState, alarms: Alarms, now_ms: int, pace: Pace) -> Told:
    return Told(replace(state, alarms=pruned(alarms, now_ms, pace).by_key), alarms.notices)


def _decided(alarms: Alarms, decision: Decision, known: Incident | None, now_ms: int, pace: Pace) -> Alarms:
    incident = known if known is not None and known.id == decision.incident else None
    alarms = _earlier_over(alarms, decision.attempt, f"Attempt {decision.attempt} ran after it.", now_ms)
    key = f"{decision.job}{_INCIDENT}{decision.incident}/{decision.action}"
    if decision.action == "none" and any(a.group == decision.incident for a in alarms.by_key.values()):
        return alarms  # a revision of an incident that people have heard of, and its command is out
    related: list[str] = []
    for other in tuple(alarms.by_key.values()):
        if other.group == decision.incident and other.key != key:
            alarms = dropped(alarms, other.key)
        elif _FINDING in other.key and other.attempt == decision.attempt and not _holds(other):
            if other.told_ms is None:
                related.append(other.wording.what)
            alarms = dropped(alarms, other.key)
    words = wording.of_decision(decision, incident, related)
    alarm = Alarm(key, decision.incident, decision.attempt, words, reminds=decision.action == "hold")
    alarms = opened(alarms, alarm, now_ms, pace)
    return dropped(alarms, key) if words.severity == "info" else alarms


def _found(alarms: Alarms, finding: Finding, now_ms: int, pace: Pace) -> Alarms:
    key = f"{finding.job}{_FINDING}{finding.kind}"
    if finding.kind == RESUMED:
        return _over(alarms, finding.attempt - 1, f"The job {finding.detail}.", now_ms)
    alarms = _earlier_over(alarms, finding.attempt, f"Attempt {finding.attempt} runs.", now_ms)
    if not finding.open:
        return cleared(alarms, key, f"{finding.detail}.", now_ms)
    holds = finding.kind in wording.HOLDING
    ended = any(
        a.open and _INCIDENT in a.key and a.attempt == finding.attempt for a in alarms.by_key.values()
    )
    if ended and not holds:
        return alarms
    alarm = Alarm(key, key, finding.attempt, wording.of_finding(finding), reminds=True)
    return opened(alarms, alarm, now_ms, pace, waits=not holds)


def _watched(alarms: Alarms, spec: SpecEvent, now_ms: int, pace: Pace) -> Alarms:
    key = f"{spec.job}/watch/{spec.spec[:12]}"
    for alarm in tuple(alarms.by_key.values()):
        alarms = cleared(alarms, alarm.key, "A person started it again.", now_ms)
    return dropped(opened(alarms, Alarm(key, key, 0, wording.of_spec(spec)), now_ms, pace), key)


def _earlier_over(alarms: Alarms, attempt: int, how: str, now_ms: int) -> Alarms:
    for alarm in tuple(alarms.by_key.values()):
        if alarm.attempt < attempt:
            alarms = cleared(alarms, alarm.key, how, now_ms)
    return alarms


def _over(alarms: Alarms, attempt: int, how: str, now_ms: int) -> Alarms:
    """The incident of this attempt, and of those before it, is over."""
    for alarm in tuple(alarms.by_key.values()):
        if _INCIDENT in alarm.key and alarm.attempt <= attempt:
            alarms = cleared(alarms, alarm.key, how, now_ms)
    return alarms


def _holds(alarm: Alarm) -> bool:
    return alarm.key.rpartition("/")[2] in wording.HOLDING
