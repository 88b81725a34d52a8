"""Signs and publishes a person's restart, and waits for the executor's answer. Shell.

The spec goes out first, then the act, then the command. If this process dies before the command, nothing is
started. With the command, the executor's claim and its effect key count, whoever issued it.
"""

from __future__ import annotations

import getpass
import time
from dataclasses import replace

from midwatch.agents.launch.job_spec import spec_event
from midwatch.agents.query.topic_reader import read_topics
from midwatch.agents.reporter import Reporter
from midwatch.agents.rescue.job_config import write_clone
from midwatch.agents.rescue.plan import Plan
from midwatch.agents.signing import load_signer, spec_hash
from midwatch.streams.errors import MidwatchError, ServiceUnreachable
from midwatch.streams.failpoints import failpoint
from midwatch.streams.host.clock import now_ms
from midwatch.streams.records import Command, Outcome, PersonAct, Spec
from midwatch.streams.records.commands import BY_PERSON
from midwatch.streams.records.effect_keys import command_id
from midwatch.streams.settings.schema import Settings

LIFETIME_MS = 300_000
_LOOK_S = 0.5
_OVER = ("refused", "expired", "failed")


class NotResumed(MidwatchError):
    """The executor did not start the job again."""


def order(plan: Plan, settings: Settings) -> Command:
    """Writes the clone, and publishes spec, act and command.

    Raises:
        ConfigurationError: this host does not have the installation's key.
        ServiceUnreachable: Kafka does not take a record.
    """
    signer = load_signer(settings.state_directory)
    spec = plan.spec
    if plan.edit is not None:
        spec = signer.sign(write_clone(plan.edit.config, plan.edit.clone, plan.edit.text, spec))
    command = signer.sign(_command(plan, spec, getpass.getuser(), now_ms()))
    reporter = Reporter(settings)
    try:
        if plan.edit is not None:
            reporter.spec(spec)
            failpoint("resume-spec")
            known = plan.incident.spec or spec_event(spec, "")
            reporter.event(replace(known, spec=spec_hash(spec), incarnation=""))
        reporter.event(_act(plan, command, spec))
        failpoint("resume-act")
        reporter.command(command)
    finally:
        reporter.close()
    return command


def await_outcome(settings: Settings, command: Command, patience: float) -> Outcome:
    """The outcome `done` of the command.

    Raises:
        NotResumed: the executor refused it or failed.
        ServiceUnreachable: nobody has carried it out within `patience` seconds. It may still happen.
    """
    events = settings.topic_names.events
    since, deadline = {events: now_ms() - LIFETIME_MS}, time.monotonic() + patience
    while True:
        seen = read_topics(settings, [events], since_ms=since, only_key=command.job.encode()).seen
        told = [s.record for s in seen if isinstance(s.record, Outcome) and s.record.command == command.id]
        for outcome in told:
            if outcome.state == "done":
                return outcome
            if outcome.state in _OVER:
                raise NotResumed(
                    f"{outcome.state}: {outcome.reason}",
                    where=command.job,
                    remedy=f"`midwatch why {command.job}` shows what happened; nothing runs twice",
                )
        if time.monotonic() > deadline:
            raise ServiceUnreachable(
                "the command is out, and " + ("it is under way" if told else "no executor has answered yet"),
                where=command.job,
                remedy=f"`midwatch why {command.job}` shows how it goes on, `midwatch doctor` the rest",
            )
        time.sleep(_LOOK_S)


def _command(plan: Plan, spec: Spec, who: str, now: int) -> Command:
    incident = plan.incident
    return Command(
        id=command_id(spec.job, incident.attempt, plan.seq),
        job=spec.job,
        attempt=incident.attempt,
        seq=plan.seq,
        action="restart",
        incarnation=incident.incarnation,
        incident=incident.id,
        revision=incident.revision,
        reason=f"{who} asked for it",
        not_before_ms=now,
        expires_ms=now + LIFETIME_MS,
        issuer=f"{BY_PERSON}{who}",
        spec=spec_hash(spec),
        bundle=incident.verdict.bundle,
        restart_number=plan.restarts + 1,
        restart_limit=spec.max_restarts,
    )


def _act(plan: Plan, command: Command, spec: Spec) -> PersonAct:
    """What a later reader must know of the act: whose, which command, and what was changed."""
    told = {"command": command.id, "attempt": str(command.attempt), "spec": command.spec}
    if plan.edit is not None:
        told["config"] = plan.edit.clone.name
        told |= {f"set {each.key}": f"{each.old} → {each.new}" for each in plan.edit.changed}
    return PersonAct(spec.job, "resume", getpass.getuser(), now_ms() / 1000, told)
