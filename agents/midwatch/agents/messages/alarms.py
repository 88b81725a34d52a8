"""Which notices a job's alarms give, and when. Pure: `now_ms` is the time of the partition.

An alarm opens and is told once. After the cooldown it is told again, while it lasts or when it comes back. It
is resolved at most once for each time that it was told as open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from midwatch.agents.messages.notice import Notice, NoticeState
from midwatch.streams.settings.kinds import MessageSeverity

REMINDERS = 3
"""How often an alarm that lasts is told again. The pause doubles each time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How soon and how often: `wait_ms` for a finding's incident, `cooldown_ms` between two of one key."""

    wait_ms: int = 10_000
    cooldown_ms: int = 3_600_000


@dataclass(frozen=True, slots=True)
class Wording:
    """What a notice says of an alarm."""

    severity: MessageSeverity
    title: str
    what: str = ""
    why: str = ""
    done: str = ""
    look: str = ""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that people hear of. `due_ms`: when it is told, or told again; None for no time.

    `open`: it lasts. `told`: people heard that it is open, and not that it is over. `reminds`: it is told
    again while it lasts. `over`: what ended it before anybody was told.
    """

    key: str
    group: str
    attempt: int
    wording: Wording
    open: bool = True
    told: bool = False
    told_ms: int | None = None
    number: int = 0
    reminded: int = 0
    reminds: bool = False
    due_ms: int | None = None
    over: str = ""


@dataclass(frozen=True, slots=True)
class Alarms:
    """The alarms of one job, by key, and the notices that the last step gave."""

    job: str
    by_key: Mapping[str, Alarm] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()

    def due_ms(self) -> int | None:
        """The earliest time of any of them; None without one."""
        return min((a.due_ms for a in self.by_key.values() if a.due_ms is not None), default=None)


def opened(alarms: Alarms, alarm: Alarm, now_ms: int, pace: Pace, *, waits: bool = False) -> Alarms:
    """An alarm opens, or is seen again. With `waits` it is told only after `pace.wait_ms`."""
    known = alarms.by_key.get(alarm.key)
    if known is None or known.told_ms is None:
        due_ms = known.due_ms if known is not None and known.due_ms is not None else now_ms + pace.wait_ms
        if waits:
            return _put(alarms, replace(alarm, due_ms=due_ms))
        return _tell(alarms, alarm, "opened", now_ms, pace)
    seen = replace(known, wording=alarm.wording, group=alarm.group, attempt=alarm.attempt)
    seen = replace(seen, reminds=alarm.reminds, open=True, over="")
    if known.told and known.due_ms is not None:
        return _put(alarms, seen)  # the reminder says the new words
    if now_ms - known.told_ms >= pace.cooldown_ms:
        return _tell(alarms, replace(seen, reminded=0), "again", now_ms, pace)
    if known.told:
        return _put(alarms, seen)
    return _put(alarms, replace(seen, reminded=0, due_ms=known.told_ms + pace.cooldown_ms))


def cleared(alarms: Alarms, key: str, how: str, now_ms: int) -> Alarms:
    """What the alarm was about is over. Nothing is told if nobody heard of it."""
    known = alarms.by_key.get(key)
    if known is None or not known.open:
        return alarms
    if known.told:
        resolved = replace(known, open=False, told=False, due_ms=None, number=known.number + 1)
        return _notice(_put(alarms, resolved), resolved, "resolved", how, now_ms)
    # One that waits to be told for the first time is still told: a short one may be the only sign.
    due_ms = known.due_ms if known.told_ms is None else None
    return _put(alarms, replace(known, open=False, over=how, due_ms=due_ms))


def dropped(alarms: Alarms, key: str) -> Alarms:
    """Another alarm says what this one said: it is over, and nobody hears of it again."""
    known = alarms.by_key[key]
    return _put(alarms, replace(known, open=False, told=False, due_ms=None))


def timed(alarms: Alarms, now_ms: int, pace: Pace) -> Alarms:
    """Tell what is due. However late that is, an alarm is told once."""
    for alarm in tuple(alarms.by_key.values()):
        if alarm.due_ms is None or alarm.due_ms > now_ms:
            continue
        if alarm.told_ms is None:
            alarms = _tell(alarms, alarm, "opened", now_ms, pace)
        elif alarm.told:
            alarms = _tell(alarms, replace(alarm, reminded=alarm.reminded + 1), "again", now_ms, pace)
        else:
            alarms = _tell(alarms, alarm, "again", now_ms, pace)
    return alarms


def pruned(alarms: Alarms, now_ms: int, pace: Pace) -> Alarms:
    """Without the alarms that are over and whose cooldown has passed."""
    kept = {
        key: a
        for key, a in alarms.by_key.items()
        if a.open or a.due_ms is not None or (a.told_ms is not None and now_ms - a.told_ms < pace.cooldown_ms)
    }
    return replace(alarms, by_key=kept) if len(kept) < len(alarms.by_key) else alarms


def _tell(alarms: Alarms, alarm: Alarm, state: NoticeState, now_ms: int, pace: Pace) -> Alarms:
    pause = pace.cooldown_ms * 2**alarm.reminded
    again = alarm.open and alarm.reminds and alarm.reminded < REMINDERS and pace.cooldown_ms > 0
    counted = replace(
        alarm,
        told=alarm.open,
        told_ms=now_ms,
        number=alarm.number + 1,
        due_ms=now_ms + pause if again else None,
    )
    over = "" if alarm.open else f"It is over already: {alarm.over}"
    return _notice(_put(alarms, counted), counted, state, over, now_ms)


def _notice(alarms: Alarms, alarm: Alarm, state: NoticeState, done: str, now_ms: int) -> Alarms:
    wording = alarm.wording
    notice = Notice(
        key=alarm.key,
        number=alarm.number,
        group=alarm.group,
        state=state,
        severity=wording.severity,
        job=alarms.job,
        title=wording.title,
        at_ms=now_ms,
        what=wording.what,
        why=wording.why,
        done=done or wording.done,
        look=wording.look,
    )
    return replace(alarms, notices=(*alarms.notices, notice))


def _put(alarms: Alarms, alarm: Alarm) -> Alarms:
    return replace(alarms, by_key={**alarms.by_key, alarm.key: alarm})
