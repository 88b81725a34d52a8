"""Detect as a fold of the topic `events`: bytes of Redis fields and records in, bytes out. Pure.

A job's state is the field `job` and one field `node:<name>` for each node, so that a beat of one node of a
thousand writes two small fields. The partition holds one field `due:<job>` for each job with a timer, and
in `cut` when its log began, if that was not at its first record. Which bundle judges it:
`midwatch.agents.rulesets.reload.activation`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from midwatch.agents.detect.incident.fold import Folded, fire_due, fold_with_timers
from midwatch.agents.detect.incident.state import Job, JobState, NodeState
from midwatch.agents.rulesets.content import Content
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
"""A job that was alive when the log was cut has written a carry within so many times their pause."""

OwnerOf = Callable[[bytes], int]
"""The partition that Kafka's default partitioner gives a key."""


@dataclass(frozen=True, slots=True)
class DetectFold:
    """The pure core of detect."""

    limits: WatchLimits
    incidents: str
    owner_of: OwnerOf
    contents: Mapping[str, Content] = field(default_factory=dict)
    """Bundles by their hash; the shell adds what `apply` asks for."""

    def keys(self, partition: Fields, message: Message) -> Collection[bytes]:
        """The job of the record, and every job whose timer is due."""
        wanted = {job for job, due in _dues(partition).items() if due <= message.now_ms}
        if message.key is not None:
            wanted.add(message.key)
        return wanted

    def apply(self, states: Mapping[bytes, Fields], message: Message) -> Applied:
        """Fire what is due, then fold the record."""
        draft = _Draft(states, self.incidents, message)
        limits = self._limits(draft.states[PARTITION])
        detectors = self._detectors(draft.states[PARTITION])
        self._fire(draft, message.now_ms, limits, detectors)
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
                cut=message.now_ms <= draft.cut_ms + int(_SNAPSHOTS * self.limits.carry_every * 1000),
            ),
        )
        return draft.applied()

    def on_poison(self, states: Mapping[bytes, Fields], message: Message, error: Exception) -> Applied:
        """Say that the job holds; a timer that raises is cleared, the others fire."""
        draft, limits = _Draft(states, self.incidents, message), self._limits(states[PARTITION])
        detectors = self._detectors(states[PARTITION])
        for job in [job for job, due in _dues(states[PARTITION]).items() if due <= message.now_ms]:
            try:
                if job in states:
                    draft.take(job, fire_due(draft.job(job), message.now_ms, limits, detectors))
            except Exception:  # whatever a timer raises, the partition must go on
                draft.partition[_DUE + job] = None
        if message.key in states and not isinstance(error, MalformedRecord):
            self._hold(draft, message, error)
        return draft.applied()

    def next_deadline(self, partition: Fields) -> int | None:
        """The earliest timer of any job."""
        return min(_dues(partition).values(), default=None)

    def tick_value(self) -> bytes:
        """A tick says nothing but that time passed."""
        return codec.encode(Tick(due_ms=0))

    def _hold(self, draft: _Draft, message: Message, error: Exception) -> None:
        """Say it once: every further record of the job may be poisoned in the same way."""
        assert message.key is not None  # noqa: S101  # the caller asked
        if _POISONED in draft.states[message.key]:
            return
        draft.changed.setdefault(message.key, {})[_POISONED] = b"1"
        detail = f"a record could not be folded: {type(error).__name__}: {error}"
        name = _text(message.key)
        draft.send(name, Finding(name, 0, "poisoned", True, message.now_ms, detail))

    def _limits(self, partition: Fields) -> WatchLimits:
        """How long jobs may be silent, by the bundle in force. Raises ContentMissing."""
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

    def _fire(self, draft: _Draft, now_ms: int, limits: WatchLimits, detectors: Detectors) -> None:
        dues = sorted((due, job) for job, due in _dues(draft.states[PARTITION]).items() if due <= now_ms)
        for _, job in dues:
            draft.take(job, fire_due(draft.job(job), now_ms, limits, detectors))

    def _check(self, event: Event, message: Message) -> None:
        assert message.key is not None  # noqa: S101  # the caller asked
        said = event.origin.job if isinstance(event, Hits | Heartbeat) else getattr(event, "job", None)
        if said is None or said.encode() != message.key:
            raise MisdirectedRecord(
                f"a record of {said!r} under the key of {_text(message.key)!r}", where="events"
            )
        if self.owner_of(message.key) != message.partition:
            raise MisdirectedRecord(
                f"the key {_text(message.key)!r} does not belong to partition {message.partition}",
                where="events",
                remedy="the sender must use Kafka's own partitioner (murmur2), not librdkafka's default",
            )


class _Draft:
    """The changes of one record."""

    def __init__(self, states: Mapping[bytes, Fields], topic: str, message: Message) -> None:
        self.states = states
        self.topic = topic
        self.message = message
        self.cut_ms, self.partition = _beginning(states[PARTITION], message)
        self.changed: dict[bytes, dict[bytes, bytes | None]] = {}
        self.jobs: dict[bytes, Job] = {}
        self.sends: list[Send] = []

    def job(self, key: bytes) -> Job:
        """The job as it stands, drafts included."""
        if key not in self.jobs:
            self.jobs[key] = _read(self.states.get(key, {}))
        return self.jobs[key]

    def take(self, key: bytes, folded: Folded) -> None:
        """Note what changed between the job as it was and as it is."""
        old, new = self.job(key), folded.job
        fields = self.changed.setdefault(key, {})
        if new.state != old.state:
            fields[_JOB] = codec.state_to_bytes(new.state)
        for name, node in new.nodes.items():
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
        """What one record did."""
        changed: dict[bytes, Mapping[bytes, bytes | None]] = {k: v for k, v in self.changed.items() if v}
        if self.partition:
            changed[PARTITION] = self.partition
        return Applied(changed, tuple(self.sends))


def beginning(cut_ms: int | None) -> dict[bytes, bytes]:
    """The state of a partition of which nothing was folded yet: its log begins at its first record (None),
    or was cut, and its first record now is that of the time `cut_ms`.
    """
    return {_CUT: b"%d" % (_NEVER if cut_ms is None else cut_ms)}


def _beginning(partition: Fields, message: Message) -> tuple[int, dict[bytes, bytes | None]]:
    """When the log that the state was folded from begins, and the field to be noted at its first record."""
    known = partition.get(_CUT)
    if known is not None:
        return int(known), {}
    cut = message.offset > 0 and not partition
    noted = beginning(message.now_ms if cut else None)
    return int(noted[_CUT]), {**noted}


def _read(fields: Fields) -> Job:
    state = codec.state_from_bytes(fields[_JOB], JobState) if _JOB in fields else JobState()
    nodes = {
        _text(name[len(_NODE) :]): codec.state_from_bytes(blob, NodeState)
        for name, blob in fields.items()
        if name.startswith(_NODE)
    }
    return Job(state, nodes)


def _dues(partition: Fields) -> dict[bytes, int]:
    return {name[len(_DUE) :]: int(due) for name, due in partition.items() if name.startswith(_DUE)}


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise MalformedRecord(f"a key that is no UTF-8: {key[:64]!r}", where="events") from error
