"""Decides whether the executor carries out a command. Pure: facts go in, a value with its reason comes out.

Every check of a command is here and nowhere else, and runs before the executor makes a claim:

- The installation's key signed the command.
- The command is not late, and it is for the latest start of the job.
- The spec is the one that the command names, and the same key signed it.
- Somebody armed the job.
- The rate of commands and the number of failing jobs are below their limits.
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
    """What the executor's configuration allows. An empty list of users allows all."""

    clusters: frozenset[str]  # the names of the clusters that this executor has a driver for
    users: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()  # of SLURM; empty allows all
    rate: int = 30  # commands accepted per `rate_window_ms`, over all jobs
    rate_window_ms: int = 3_600_000
    storm_jobs: int = 10  # more jobs with commands within `storm_window_ms` have one common cause
    storm_window_ms: int = 120_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """An earlier command, accepted or not. `at_ms`: the executor's clock when it judged the command."""

    job: str
    at_ms: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class Known:
    """All that admission needs to know beside the command itself."""

    now_ms: int
    sent_ms: int  # when the command was written, by the time of its Kafka record
    signed: bool
    spec: Spec | None  # the one whose hash the command names; None if `specs` does not hold it
    spec_signed: bool
    incarnations: tuple[str, ...]  # of the job, oldest first, as read from `events`
    arming: Arming
    recent: Sequence[Arrival] = ()
    lost_ms: int | None = None  # when the executor found that Redis had lost earlier claims; None if never
    partitions: tuple[str, ...] = ()  # the SLURM partitions that the spec's submission names
    unsafe: str = ""  # why this Redis may lose a claim; "" if it is safe


@dataclass(frozen=True, slots=True)
class CommandAdmission:
    """Whether the executor accepts the command, and why."""

    state: Literal["accepted", "refused", "expired"]
    reason: str


def admit(command: Command, known: Known, limits: AdmissionLimits) -> CommandAdmission:
    """Accepts the command, or gives the first objection to it."""
    if not known.signed:
        return CommandAdmission("refused", "not signed by this installation's key")
    if command.expires_ms <= known.now_ms:
        late = (known.now_ms - command.expires_ms) / 1000
        return CommandAdmission("expired", f"it came {late:.0f} s after its time")
    if too_old := _older_than_loss(command, known):
        # Expired, not refused: only the command's age is wrong, so decide may issue the next one.
        return CommandAdmission("expired", too_old)
    objection = (
        _malformed(command)
        or _wrong_spec(command, known)
        or _cluster_or_user_not_listed(known.spec, limits)
        or _partition_not_listed(known, limits)
        or _wrong_start(command, known)
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


def _older_than_loss(command: Command, known: Known) -> str:
    written = min(known.sent_ms, command.not_before_ms) if command.not_before_ms else known.sent_ms
    if known.lost_ms is not None and written < known.lost_ms:
        return "it is older than the loss of Redis: nobody knows whether it was carried out before"
    return ""


def _wrong_spec(command: Command, known: Known) -> str:
    spec = known.spec
    if spec is None:
        return f"no spec of the job has the hash {command.spec[:12] or '(none)'}"
    if not known.spec_signed:
        return "the spec is not signed by this installation's key"
    if spec.job != command.job:
        return f"the spec is that of {spec.job}"
    return ""


def _cluster_or_user_not_listed(spec: Spec | None, limits: AdmissionLimits) -> str:
    if spec is None:
        return "no spec"
    if spec.cluster not in limits.clusters:
        return f"this executor has no cluster {spec.cluster}"
    if limits.users and spec.user not in limits.users:
        return f"the user {spec.user} is not on this executor's list"
    if job_name(spec.job).user != spec.user:
        return f"the spec of {spec.job} names another user, {spec.user}"
    return ""


def _partition_not_listed(known: Known, limits: AdmissionLimits) -> str:
    if not limits.partitions or known.spec is None or known.spec.cluster != "slurm":
        return ""
    if not known.partitions:
        return "the spec names no partition, and this executor may use only some"
    others = sorted(set(known.partitions) - limits.partitions)
    return f"the partition {others[0]} is not on this executor's list" if others else ""


def _wrong_start(command: Command, known: Known) -> str:
    if command.incarnation not in known.incarnations:
        return f"the job never ran as {command.incarnation or '(nothing)'}"
    if command.incarnation != known.incarnations[-1]:
        return f"it is for {command.incarnation}, but the job now runs as {known.incarnations[-1]}"
    return ""


def _not_armed(known: Known) -> str:
    return known.unsafe or ("" if known.arming.armed else known.arming.reason)


def _too_many(command: Command, known: Known, limits: AdmissionLimits) -> str:
    storm_start = known.now_ms - limits.storm_window_ms
    jobs = {arrival.job for arrival in known.recent if arrival.at_ms > storm_start} | {command.job}
    if len(jobs) > limits.storm_jobs:
        return (
            f"{len(jobs)} jobs have commands within {limits.storm_window_ms / 1000:.0f} s: "
            "so many at once have a common cause that no restart cures"
        )
    since = known.now_ms - limits.rate_window_ms
    accepted = sum(1 for arrival in known.recent if arrival.accepted and arrival.at_ms > since)
    if accepted >= limits.rate:
        return f"{accepted} commands were accepted in the last {limits.rate_window_ms / 60_000:.0f} minutes"
    return ""
