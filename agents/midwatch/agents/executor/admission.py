"""Is this order to be carried out? Pure: what the executor knows goes in, a value with its reason comes out.

Everything an order must show is checked here and nowhere else, before a claim is made: who signed it, that
it is neither late nor meant for another start of the job, that its spec is the very one that was signed,
that somebody armed the job, and that the cluster as a whole can bear it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from midwatch.agents.executor.arming import Arming
from midwatch.streams.records import Command, Spec
from midwatch.streams.records.effect_keys import command_id
from midwatch.streams.records.identity import job_name

_NODES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,\[\]-]{0,1023}")


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """What the executor's own configuration allows. An empty list of users allows all."""

    clusters: frozenset[str]  # the names of the clusters that this executor has a driver for
    users: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()  # of SLURM; empty allows all
    rate: int = 30  # commands accepted per `rate_window_ms`, over all jobs
    rate_window_ms: int = 3_600_000
    storm_jobs: int = 10  # so many jobs asking within `storm_window_ms` have one common cause
    storm_window_ms: int = 120_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """An order that came earlier, accepted or not. Broker's time of the record, milliseconds."""

    job: str
    at_ms: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class Known:
    """All that admission needs to know beside the order itself."""

    now_ms: int
    sent_ms: int  # when the order was written, by the record's own time
    signed: bool
    spec: Spec | None  # of the hash that the order names; None if `specs` holds no such one
    spec_signed: bool
    incarnations: tuple[str, ...]  # of the job, oldest first, as `events` told them
    arming: Arming
    recent: Sequence[Arrival] = ()
    lost_ms: int | None = None  # when the memory of earlier claims was found lost, if it was
    partitions: tuple[str, ...] = ()  # that the spec's submission names
    unsafe: str = ""  # why this Redis cannot be trusted with a claim; "" if it can


@dataclass(frozen=True, slots=True)
class CommandAdmission:
    """What becomes of the order, and why."""

    state: Literal["accepted", "refused", "expired"]
    reason: str


def admit(command: Command, known: Known, limits: AdmissionLimits) -> CommandAdmission:
    """The first objection, or acceptance."""
    if not known.signed:
        return CommandAdmission("refused", "not signed by this installation's key")
    if command.expires_ms <= known.now_ms:
        late = (known.now_ms - command.expires_ms) / 1000
        return CommandAdmission("expired", f"it came {late:.0f} s after its time")
    if forgotten := _forgotten(command, known):
        # Expired, not refused: nothing speaks against the order but its age, so decide may issue the next.
        return CommandAdmission("expired", forgotten)
    objection = (
        _malformed(command)
        or _of_another_spec(command, known)
        or _not_on_the_lists(known.spec, limits)
        or _elsewhere(known, limits)
        or _of_another_start(command, known)
        or _not_armed(known)
        or _too_many(command, known, limits)
    )
    return (
        CommandAdmission("refused", objection)
        if objection
        else CommandAdmission("accepted", known.arming.reason)
    )


def _malformed(command: Command) -> str:
    if command.id != command_id(command.job, command.attempt, command.seq):
        return "its id is not that of its job, attempt and number"
    for name, value in command.parameters.items():
        if name == "exclude" and isinstance(value, str) and _NODES.fullmatch(value):
            continue
        if name == "checkpoint_step" and isinstance(value, int) and value >= 0:
            continue
        return f"the parameter {name} is not allowed, or not with this value"
    return ""


def _forgotten(command: Command, known: Known) -> str:
    written = min(known.sent_ms, command.not_before_ms) if command.not_before_ms else known.sent_ms
    if known.lost_ms is not None and written < known.lost_ms:
        return "it is older than the loss of Redis: whether it was carried out before is not known"
    return ""


def _of_another_spec(command: Command, known: Known) -> str:
    spec = known.spec
    if spec is None:
        return f"no spec of the job has the hash {command.spec[:12] or '(none)'}"
    if not known.spec_signed:
        return "the spec is not signed by this installation's key"
    if spec.job != command.job:
        return f"the spec is that of {spec.job}"
    return ""


def _not_on_the_lists(spec: Spec | None, limits: AdmissionLimits) -> str:
    if spec is None:
        return "no spec"
    if spec.cluster not in limits.clusters:
        return f"this executor has no cluster {spec.cluster}"
    if limits.users and spec.user not in limits.users:
        return f"the user {spec.user} is not on this executor's list"
    if job_name(spec.job).user != spec.user:
        return f"the spec of {spec.job} names another user, {spec.user}"
    return ""


def _elsewhere(known: Known, limits: AdmissionLimits) -> str:
    if not limits.partitions or known.spec is None or known.spec.cluster != "slurm":
        return ""
    if not known.partitions:
        return "it names no partition, and this executor may use only some"
    others = sorted(set(known.partitions) - limits.partitions)
    return f"the partition {others[0]} is not on this executor's list" if others else ""


def _of_another_start(command: Command, known: Known) -> str:
    if command.incarnation not in known.incarnations:
        return f"the job never ran as {command.incarnation or '(nothing)'}"
    if command.incarnation != known.incarnations[-1]:
        return f"it is meant for {command.incarnation}, but the job now runs as {known.incarnations[-1]}"
    return ""


def _not_armed(known: Known) -> str:
    return known.unsafe or ("" if known.arming.armed else known.arming.reason)


def _too_many(command: Command, known: Known, limits: AdmissionLimits) -> str:
    asking = {a.job for a in known.recent if a.at_ms > known.now_ms - limits.storm_window_ms} | {command.job}
    if len(asking) > limits.storm_jobs:
        return (
            f"{len(asking)} jobs ask within {limits.storm_window_ms / 1000:.0f} s: "
            "so many at once have a common cause that no restart cures"
        )
    since = known.now_ms - limits.rate_window_ms
    accepted = sum(1 for a in known.recent if a.accepted and a.at_ms > since)
    if accepted >= limits.rate:
        return f"{accepted} commands were accepted in the last {limits.rate_window_ms / 60_000:.0f} minutes"
    return ""
