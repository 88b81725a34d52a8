"""Reads `commands`: admits, claims and answers each command, then commits its offset. Shell.

A command that Kafka delivers again gets its earlier answer and has no second effect. The executor looks
for that answer before it judges the command: the command's own success would make it look outdated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka import OffsetAndMetadata, TopicPartition

from midwatch.agents.executor.admission import AdmissionLimits, Arrival, CommandAdmission, Known, admit
from midwatch.agents.executor.arming import Arming, arming, asked_by_person
from midwatch.agents.executor.claims import Claims
from midwatch.agents.reporter import Reporter, received
from midwatch.agents.schedulers.base import Cluster
from midwatch.agents.schedulers.wrapping import partitions_of, script_of, verified_script
from midwatch.agents.signing import Verifier
from midwatch.agents.watcher.census_reader import CensusReader
from midwatch.streams.errors import (
    MalformedRecord,
    MidwatchError,
    MisdirectedRecord,
    NewerRecord,
    UnsignedRecord,
)
from midwatch.streams.failpoints import failpoint
from midwatch.streams.host.clock import now_ms
from midwatch.streams.records import Command, Outcome, Spec
from midwatch.streams.records.codec import decode
from midwatch.streams.records.effect_keys import effect_key
from midwatch.streams.records.identity import native_id
from midwatch.streams.services.kafka_client import LASTING, PATIENT, plain_consumer
from midwatch.streams.settings.schema import Settings

_CATCH_UP_S = 60.0


@dataclass(frozen=True, slots=True)
class Desk:
    """What the executor needs to judge commands and to carry them out."""

    claims: Claims
    census: CensusReader
    reporter: Reporter
    verifier: Verifier
    limits: AdmissionLimits
    clusters: Mapping[str, Cluster]  # by the names that specs use
    state_directory: Path
    acting: bool  # False in observe mode
    traces: bool = False  # whether a new start is told the span that it hangs under


class CommandConsumer:
    """Reads the topic `commands` and keeps the executor's offsets."""

    def __init__(self, settings: Settings, desk: Desk) -> None:
        self._desk = desk
        self._topic = settings.topic_names.commands
        self._consumer: Any = plain_consumer(
            settings.kafka,
            **LASTING,
            **PATIENT,
            group_id=f"{settings.topics.prefix}.executor",
            max_poll_records=1,  # a commit must not cover a command that is not claimed yet
        )
        # Assigned by hand: the group only keeps the offsets, and there is one executor. A consumer that
        # joins a group before it knows the topic stays without partitions for minutes.
        partitions = self._consumer.partitions_for_topic(self._topic) or ()
        self._consumer.assign([TopicPartition(self._topic, number) for number in sorted(partitions)])

    def poll(self, timeout_ms: int) -> int:
        """Waits at most `timeout_ms` for a message and handles it. Returns the number of messages."""
        polled = self._consumer.poll(timeout_ms=timeout_ms, max_records=1)
        messages = [message for batch in polled.values() for message in batch]
        for message in messages:
            self._handle(message)
            partition = TopicPartition(message.topic, message.partition)
            self._consumer.commit({partition: OffsetAndMetadata(message.offset + 1, "", -1)})
        return len(messages)

    def close(self) -> None:
        self._consumer.close()

    def _handle(self, message: Any) -> None:
        command = read_command(message, self._desk.verifier, self._desk.reporter)
        if command is None:
            return
        ends = self._consumer.end_offsets(self._desk.census.partitions)
        self._desk.census.catch_up(ends, _CATCH_UP_S)
        self._desk.reporter.event(self._answer(command, message.timestamp), command=command)

    def _answer(self, command: Command, sent_ms: int) -> Outcome:
        desk, now = self._desk, now_ms()
        earlier = desk.claims.earlier(command)
        if earlier is not None:
            again = "delivered again; the executor is already carrying it out"
            return earlier.outcome or _outcome(command, "accepted", again)
        admission = self._judge(command, sent_ms, now)
        desk.claims.arrived(command, Arrival(command.job, now, admission.state == "accepted"))
        if admission.state != "accepted":
            return _outcome(command, admission.state, admission.reason)
        failpoint("accept")
        self._retire(command)
        claimed = desk.claims.claim(command, now)
        failpoint("claim")
        match claimed.state:
            case "held":
                holder = f"the command {claimed.holder[:12]} already acts on this attempt"
                return _outcome(command, "refused", holder)
            case "lost":
                return _outcome(command, "expired", "Redis has just lost earlier claims")
            case _:
                return claimed.outcome or _outcome(command, "accepted", admission.reason)

    def _retire(self, command: Command) -> None:
        """Retires the effect key of an earlier job of the same name. Call it before the claim.

        Once the claim is made, the watcher takes every start with the key for a start of this job. A start
        of the earlier job would then look as if somebody else had started this one.
        """
        spec = self._desk.census.spec(command.spec)
        cluster = self._desk.clusters.get(spec.cluster) if spec else None
        if cluster is not None and command.action == "restart":
            key = effect_key(command.job, command.attempt, "start")
            cluster.retire(key, command.incarnation)

    def _judge(self, command: Command, sent_ms: int, now: int) -> CommandAdmission:
        desk = self._desk
        spec = desk.census.spec(command.spec)
        window = max(desk.limits.rate_window_ms, desk.limits.storm_window_ms)
        known = Known(
            now_ms=now,
            sent_ms=sent_ms,
            signed=True,
            spec=spec,
            spec_signed=spec is not None and desk.verifier.accepts(spec),
            incarnations=desk.census.incarnations(command.job),
            arming=allowed(desk, command, armed_by_spec=spec is not None and spec.armed),
            recent=desk.claims.recent(now - window, without=command.id),
            lost_ms=desk.claims.lost_ms,
            partitions=_partitions(spec) if spec and desk.limits.partitions else (),
            unsafe=desk.claims.unsafe() if desk.acting or command.person else "",
        )
        return admit(command, known, desk.limits)


def _partitions(spec: Spec) -> tuple[str, ...]:
    """Empty if the script cannot be read; admission then refuses a command for SLURM, as the start would."""
    try:
        return partitions_of(spec.argv, verified_script(script_of(spec.argv)))
    except MidwatchError:
        return ()


def read_command(message: Any, verifier: Verifier, reporter: Reporter) -> Command | None:
    """The command in a message; None if the message went to the dead-letter topic instead."""
    try:
        return _command(message, verifier)
    except (MalformedRecord, NewerRecord) as error:
        reporter.dead(received(message), error)
        return None


def _command(message: Any, verifier: Verifier) -> Command:
    """The command in a message, once key and signature prove its job.

    An answer goes to the job that the command names. A stranger's command therefore gets no answer and
    goes to the dead-letter topic.

    Raises:
        MalformedRecord: no command, under another job's key, or not signed by this installation's key.
        NewerRecord: of a newer version, or of an unknown kind.
    """
    command = decode(message.value or b"")
    if not isinstance(command, Command):
        raise MisdirectedRecord(f"a {type(command).__name__} has no place among the commands")
    if message.key != command.job.encode():
        raise MisdirectedRecord(f"a command for {command.job} under the key {(message.key or b'')[:300]!r}")
    if not verifier.accepts(command):
        raise UnsignedRecord(
            f"a command for {command.job} that is not signed by this installation's key",
            remedy="decide and the executor must share their keys; if they do, somebody forges commands",
        )
    return command


def armed(desk: Desk, job: str, *, armed_by_spec: bool) -> Arming:
    """Whether the executor may act for the job now, and why. Reads the marks anew at each call."""
    if not desk.acting:
        return Arming(False, "the watch is in observe mode")
    return arming(desk.state_directory, job, armed_by_spec=armed_by_spec)


def allowed(desk: Desk, command: Command, *, armed_by_spec: bool) -> Arming:
    """Whether the executor may carry it out now, and why. Reads the marks anew at each call.

    What a person asked for is done in observe mode too: that mode keeps the watch from acting by itself.
    """
    if command.person:
        return asked_by_person(desk.state_directory, command.person)
    return armed(desk, command.job, armed_by_spec=armed_by_spec)


def _outcome(command: Command, state: Any, reason: str) -> Outcome:
    return Outcome(
        job=command.job,
        command=command.id,
        attempt=command.attempt,
        action=command.action,
        state=state,
        reason=reason,
        old_native_id=native_id(command.incarnation) if command.incarnation.count(":") > 1 else "",
        incident=command.incident,
    )


def final_outcome(command: Command, state: Any, reason: str, **more: Any) -> Outcome:
    """The outcome that ends a command; `more` are further fields of the outcome."""
    return replace(_outcome(command, state, reason), **more)
