"""What a person's restart of a job will do, worked out before anything is done. It writes no file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from midwatch.agents.query.timeline import Attempt, Timeline
from midwatch.agents.rescue.job_config import Clone, JobConfig, clone_of, find_config
from midwatch.agents.rescue.resume_keys import resume_values
from midwatch.agents.rescue.yaml_patch import Changed, Wanted, diff, load, patch
from midwatch.agents.schedulers.resume import ResumePoint, newest
from midwatch.streams.errors import UsageError
from midwatch.streams.records import Command, Incident, Spec

FIRST_SEQ = 101
"""The number of a person's first command for an attempt. Decide numbers its own from 1, and never so far."""

_OVER = ("refused", "expired", "failed")


@dataclass(frozen=True, slots=True)
class ConfigEdit:
    """A configuration, its clone, and what the clone will hold."""

    config: JobConfig
    clone: Clone
    text: str
    changed: tuple[Changed, ...]

    @property
    def diff(self) -> str:
        return diff(self.config.text, self.text, self.config.name, self.clone.name)


@dataclass(frozen=True, slots=True)
class Plan:
    """The restart of one attempt: under which number the command goes out, and what it starts.

    `edit` is None where the job starts as it was. `point` is the checkpoint that it will be told.
    """

    spec: Spec
    incident: Incident
    seq: int
    restarts: int
    point: ResumePoint | None = None
    notes: tuple[str, ...] = ()
    edit: ConfigEdit | None = None
    sets_resume_key: bool = False


def make_plan(
    timeline: Timeline,
    now_ms: int,
    *,
    wanted: Sequence[Wanted] = (),
    config_file: str = "",
    resume_key: str | None = None,
    same: bool = False,
) -> Plan:
    """The plan for the job of this timeline. `same`: with the configuration as it is.

    Raises:
        UsageError: the job has not ended, was started again, has no spec, or cannot be changed so.
    """
    spec, attempt, incident = _ended(timeline, now_ms)
    seq = FIRST_SEQ + sum(bool(command.person) for command in attempt.commands)
    restarts = sum(each.restarted is not None for each in timeline.attempts)
    point, notes = newest(spec.checkpoint_directory) if spec.checkpoint_directory else (None, ())
    plan = Plan(spec, incident, seq, restarts, point, notes)
    if same:
        return plan
    config = find_config(spec, config_file)
    resumed = resume_values(load(config.text, config.name), point, resume_key) if point else ()
    changed = patch(config.text, (*wanted, *resumed), config.name)
    if changed.text == config.text or not changed.changed:
        raise UsageError(
            "nothing would change",
            where=config.name,
            remedy="name a change with --set KEY=VALUE, or start it as it was with --same",
        )
    edit = ConfigEdit(config, clone_of(config, changed.text, spec), changed.text, changed.changed)
    return Plan(spec, incident, seq, restarts, point, notes, edit, sets_resume_key=bool(resumed))


def _ended(timeline: Timeline, now_ms: int) -> tuple[Spec, Attempt, Incident]:
    """The spec, the latest attempt and its incident. Raises UsageError unless the job can start again."""
    job, attempt = timeline.job, timeline.latest
    if timeline.signed is None:
        raise UsageError(
            "no spec says how to start it",
            where=job,
            remedy="only a job of `midwatch run -- COMMAND` can be started again",
        )
    incident = attempt.incident if attempt is not None else None
    if attempt is None or incident is None or not _over(incident):
        raise UsageError(
            "its latest attempt has not ended, as far as the watch knows",
            where=job,
            remedy=f"`midwatch why {job}` shows it; end it first",
        )
    later = incident.superseded_by or (
        timeline.incarnation if timeline.incarnation not in ("", incident.incarnation) else ""
    )
    if attempt.restarted or later:
        again = later or (attempt.restarted.new_incarnation if attempt.restarted else "")
        raise UsageError(f"it was started again already, as {again}", where=job)
    for command in attempt.commands:
        if _under_way(attempt, command, now_ms):
            raise UsageError(
                f"the command {command.id[:12]} already acts on attempt {attempt.number}",
                where=job,
                remedy=f"`midwatch why {job}` shows how it goes on",
            )
    return timeline.signed, attempt, incident


def _over(incident: Incident) -> bool:
    """Whether the attempt is over. A person need not wait for its last lines, where its end was reported."""
    return incident.state == "settled" or (incident.state == "ended" and bool(incident.words))


def _under_way(attempt: Attempt, command: Command, now_ms: int) -> bool:
    """Whether a command may still act. One that nobody answered is void once its time is over."""
    states = [outcome.state for _, outcome in attempt.outcomes if outcome.command == command.id]
    if any(state in _OVER for state in states):
        return False
    return bool(states) or command.expires_ms > now_ms
