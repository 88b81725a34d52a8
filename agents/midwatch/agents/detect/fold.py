"""Detect as a fold of the topic `events`: bytes of Redis fields and records in, bytes out. Pure.

A job's state is the field `job` and one field `node:<name>` for each node. So a heartbeat of one node of a
thousand writes two small fields. The partition's state has one field `due:<job>` for each job with a timer.
Its field `cut` holds the time of the oldest record, if Kafka had deleted older ones.
`midwatch.agents.rulesets.reload.activation` says which bundle is in force in a partition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import is_not

from midwatch.agents.detect.incident.fold import Folded, fire_due, fold_with_timers
from midwatch.agents.detect.incident.state import Job, JobState, NodeState
from midwatch.agents.detect.job_memory import JobMemory
from midwatch.agents.rulesets.content import Content
from midwatch.agents.rulesets.outcomes import NO_OUTCOMES, OwnOutcomes
from midwatch.agents.rulesets.reload.activation import activated, bundle_in
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.base import Detectors
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.errors import MalformedRecord, MisdirectedRecord
from midwatch.streams.records import Activation, Event, Finding, Heartbeat, Hits, IncidentRecord, Tick, codec
from midwatch.streams.worker.fold import PARTITION, Applied, ContentMissing, Fields, Message, Send

_JOB = b"job"
_NODE = b"node:"
_DUE = b"due:"
_CUT = b"cut"
_POISONED = b"poisoned"

_NEVER = -(2**53)
_SNAPSHOTS = 2
"""A job that lived when the log was cut writes a snapshot within so many times `carry_every`."""

OwnerOf = Callable[[bytes], int]
"""The partition that Kafka's default partitioner gives a key."""


@dataclass(frozen=True, slots=True)
class DetectFold:
    """The pure core of detect."""

    limits: WatchLimits
    incidents: str
    owner_of: OwnerOf
    contents: Mapping[str, Content] = field(default_factory=dict)
    """Bundles by their hash. The shell adds the bundles that `apply` misses."""
    memory: JobMemory = field(default_factory=lambda: JobMemory(job_of), repr=False, compare=False)

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:
        """The job of the record, and every job whose timer is due."""
        jobs = {job for job, due in dues(partition).items() if due <= message.now_ms}
        if message.key is not None:
            jobs.add(message.key)
        return jobs

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        """Fire the due timers, then fold the record."""
        draft = _Draft(states, self.incidents, message, self.memory)
        limits = self._limits(draft.states[PARTITION])
        detectors = self._detectors(draft.states[PARTITION])
        outcomes = self._outcomes(draft.states[PARTITION])
        self._fire(draft, message.now_ms, limits, detectors, outcomes)
        if message.value is None:
            raise MalformedRecord("a record without a value", where="events")
        event = codec.decode(message.value)
        if message.key is None:
            if isinstance(event, Activation):
                changed = activated(states[PARTITION], event, message.now_ms)
                draft.partition.update(changed)
                self._limits({**states[PARTITION], **changed})
            elif not isinstance(event, Tick):
                raise MalformedRecord(f"a {type(event).__name__} without the key of its job", where="events")
            return draft.applied()
        self._check(event, message)
        draft.take(
            message.key,
            fold_with_timers(
                draft.job(message.key),
                _text(message.key),
                event,
                message.now_ms,
                limits,
                detectors=detectors,
                outcomes=outcomes,
                cut=message.now_ms <= draft.cut_ms + int(_SNAPSHOTS * self.limits.carry_every * 1000),
            ),
        )
        return draft.applied()

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        """Open the finding that holds the job. A timer that raises is cleared, and the others fire."""
        draft, limits = _Draft(states, self.incidents, message, self.memory), self._limits(states[PARTITION])
        detectors, outcomes = self._detectors(states[PARTITION]), self._outcomes(states[PARTITION])
        for job in [job for job, due in dues(states[PARTITION]).items() if due <= message.now_ms]:
            try:
                if job in states:
                    draft.take(job, fire_due(draft.job(job), message.now_ms, limits, detectors, outcomes))
            except Exception:  # the partition must go on, whatever a timer raises
                draft.partition[_DUE + job] = None
        if message.key in states and not isinstance(error, MalformedRecord):
            self._hold(draft, message, error)
        return draft.applied()

    def next_deadline(self, partition: Fields) -> int | None:
        """The earliest timer of any job."""
        return min(dues(partition).values(), default=None)

    def tick_value(self) -> bytes:
        """The record of a tick, which says only that time passed."""
        return codec.encode(Tick(due_ms=0))

    def _hold(self, draft: _Draft, message: Message, error: Exception) -> None:
        """Open the finding once, because every further record of the job may fail in the same way."""
        assert message.key is not None  # noqa: S101  # the caller checked
        if _POISONED in draft.states[message.key]:
            return
        draft.changed.setdefault(message.key, {})[_POISONED] = b"1"
        detail = f"a record could not be folded: {type(error).__name__}: {error}"
        name = _text(message.key)
        draft.send(name, Finding(name, 0, "poisoned", True, message.now_ms, detail))

    def _limits(self, partition: Fields) -> WatchLimits:
        """The limits of silence, by the bundle in force. Raises ContentMissing."""
        bundle = bundle_in(partition)
        if not bundle:
            return self.limits
        if bundle not in self.contents:
            raise ContentMissing(bundle)
        silence = {str(phase): seconds for phase, seconds in self.contents[bundle].silence.items()}
        return replace(self.limits, **silence)

    def _detectors(self, partition: Fields) -> Detectors:
        """Those of the bundle in force, which `_limits` found."""
        bundle = bundle_in(partition)
        return self.contents[bundle].detectors if bundle else DETECTORS

    def _outcomes(self, partition: Fields) -> OwnOutcomes:
        """Those of the bundle in force, which `_limits` found."""
        bundle = bundle_in(partition)
        return self.contents[bundle].outcomes if bundle else NO_OUTCOMES

    def _fire(
        self,
        draft: _Draft,
        now_ms: int,
        limits: WatchLimits,
        detectors: Detectors,
        outcomes: OwnOutcomes,
    ) -> None:
        fired = sorted((due, job) for job, due in dues(draft.states[PARTITION]).items() if due <= now_ms)
        for _, job in fired:
            draft.take(job, fire_due(draft.job(job), now_ms, limits, detectors, outcomes))

    def _check(self, event: Event, message: Message) -> None:
        assert message.key is not None  # noqa: S101  # the caller checked
        job = event.origin.job if isinstance(event, Hits | Heartbeat) else getattr(event, "job", None)
        if job is None or job.encode() != message.key:
            raise MisdirectedRecord(
                f"a record of {job!r} under the key of {_text(message.key)!r}", where="events"
            )
        if self.owner_of(message.key) != message.partition:
            raise MisdirectedRecord(
                f"the key {_text(message.key)!r} does not belong to partition {message.partition}",
                where="events",
                remedy="the sender must use Kafka's own partitioner (murmur2), not librdkafka's default",
            )


class _Draft:
    """The draft of all changes that one record makes."""

    def __init__(
        self, states: Mapping[bytes, Fields], topic: str, message: Message, memory: JobMemory
    ) -> None:
        self.states = states
        self.memory = memory
        self.topic = topic
        self.message = message
        self.cut_ms, self.partition = _beginning(states[PARTITION], message)
        self.changed: dict[bytes, dict[bytes, bytes | None]] = {}
        self.jobs: dict[bytes, Job] = {}
        self.sends: list[Send] = []

    def job(self, key: bytes) -> Job:
        """The job with the changes so far."""
        if key not in self.jobs:
            self.jobs[key] = self.memory.job(key, self.states.get(key, {}))
        return self.jobs[key]

    def take(self, key: bytes, folded: Folded) -> None:
        """Note the difference between the job before and after the fold, and what the fold sends."""
        old, new = self.job(key), folded.job
        fields = self.changed.setdefault(key, {})
        if new.state != old.state:
            fields[_JOB] = self.memory.encoded(key, new.state)
        # Most nodes of a record's job are the very same as before.
        others = map(is_not, new.nodes.values(), map(old.nodes.get, new.nodes))
        for name, node in compress(new.nodes.items(), others):
            if old.nodes.get(name) != node:
                fields[_NODE + name.encode()] = codec.state_to_bytes(node)
        if new.state.due_ms != old.state.due_ms or _DUE + key in self.partition:
            due = new.state.due_ms
            self.partition[_DUE + key] = None if due is None else b"%d" % due
        self.jobs[key] = new
        for record in folded.records:
            self.send(_text(key), record)
        place = self.message.topic, self.message.partition
        for snapshot in folded.snapshots:
            self.sends.append(Send(place[0], key, codec.encode(snapshot), partition=place[1]))

    def send(self, job: str, record: IncidentRecord) -> None:
        """Pass a record on to decide."""
        self.sends.append(Send(self.topic, job.encode(), codec.encode(record)))

    def applied(self) -> Applied:
        """The changes and sends of the record."""
        changed: dict[bytes, Mapping[bytes, bytes | None]] = {k: v for k, v in self.changed.items() if v}
        for key, fields in changed.items():
            if key in self.jobs:
                written = {name: value for name, value in fields.items() if value is not None}
                self.memory.keep(key, {**self.states.get(key, {}), **written}, self.jobs[key])
        if self.partition:
            changed[PARTITION] = self.partition
        return Applied(changed, tuple(self.sends))


def beginning(cut_ms: int | None) -> dict[bytes, bytes]:
    """The state of a partition before its first fold.

    `cut_ms`: append time of the oldest record, if Kafka had deleted older ones; None if the log is whole.
    """
    return {_CUT: b"%d" % (_NEVER if cut_ms is None else cut_ms)}


def _beginning(partition: Fields, message: Message) -> tuple[int, dict[bytes, bytes | None]]:
    """When the folded log begins, and the field to write at its first record."""
    known = partition.get(_CUT)
    if known is not None:
        return int(known), {}
    cut = message.offset > 0 and not partition
    fields = beginning(message.now_ms if cut else None)
    return int(fields[_CUT]), {**fields}


def job_of(fields: Fields) -> Job:
    """The job in these fields; a job without any is one that no record named yet."""
    state = codec.state_from_bytes(fields[_JOB], JobState) if _JOB in fields else JobState()
    nodes = {
        _text(name[len(_NODE) :]): codec.state_from_bytes(blob, NodeState)
        for name, blob in fields.items()
        if name.startswith(_NODE)
    }
    return Job(state, nodes)


def dues(partition: Fields) -> dict[bytes, int]:
    """When each job's next timer is due. A job that is watched always has one."""
    return {name[len(_DUE) :]: int(due) for name, due in partition.items() if name.startswith(_DUE)}


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise MalformedRecord(f"a key that is not UTF-8: {key[:64]!r}", where="events") from error
