"""Refold: a recording goes through the folds of the stream again. Pure.

Detect folds the recorded events. Decide folds detect's output at the append times of the topic `incidents`,
because a decision carries its time. The refold compares detect's output now with the recorded incidents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec import UNSET

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.decide.fold import DecideFold
from midwatch.agents.detect.fold import DetectFold, beginning
from midwatch.agents.replay.recording.recording_file import Recording, RecordingSource
from midwatch.agents.rulesets.content import Content, content
from midwatch.agents.rulesets.foreign_parts import NO_EXTENSIONS, Extensions
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.errors import MalformedRecord, NewerRecord, UsageError
from midwatch.streams.records import (
    Command,
    Decision,
    Forwarded,
    Hit,
    Hits,
    Incident,
    IncidentRecord,
    RuleBundle,
    codec,
)
from midwatch.streams.worker.fold import PARTITION, ContentMissing, Fields, Fold, Message, Send
from midwatch.streams.worker.tables import ids
from midwatch.streams.worker.tables.batch import OWN, Batch

_INCIDENTS, _DECISIONS, _COMMANDS, _DEAD = "incidents", "decisions", "commands", "dead"


@dataclass(frozen=True, slots=True)
class Refolded:
    """All records, decisions and commands of the job, in order.

    `differences`: where the recorded `incidents` differ from the ones that follow from `events`.
    """

    records: tuple[IncidentRecord, ...]
    decisions: tuple[Decision, ...]
    commands: tuple[Command, ...]
    hits: tuple[Hit, ...]
    differences: tuple[str, ...]


def bundles_in(recording: Recording, extensions: Extensions = NO_EXTENSIONS) -> dict[str, Content]:
    """The bundles in a recording, by their hashes.

    Raises:
        UsageError: a bundle does not match its hash, is newer than this midwatch, or names a foreign part
            that is not at hand.
    """
    found: dict[str, Content] = {}
    for message in recording.rules:
        hash_ = (message.key or b"").decode(errors="replace")
        try:
            record = codec.decode(message.value or b"")
            bundle = record if isinstance(record, RuleBundle) else RuleBundle(())
            found[hash_] = content(hash_, bundle, extensions)
        except (MalformedRecord, NewerRecord) as error:
            raise UsageError(error.what, where=hash_, remedy=error.remedy) from error
    return found


def refold(
    recording: Recording, limits: WatchLimits, book: Rulebook, contents: Mapping[str, Content] | None = None
) -> Refolded:
    """Fold the recording again, by its own bundles or by `contents` in their place.

    Raises:
        UsageError: a record in it is newer than this midwatch, or a bundle is missing.
    """
    contents = bundles_in(recording) if contents is None else contents
    head, run = recording.head, _JobRefold(recording, book, contents)
    fold = DetectFold(limits, _INCIDENTS, lambda _: head.events.partition, contents)
    detect = _FoldedPartition(fold, head.events)
    before = head.events.first_offset - 1
    for message in recording.events:
        for send in detect.take(message):
            if send.topic == _INCIDENTS:
                run.detected.append(_DetectOutput(before, message.offset, message.timestamp_ms, send))
        before = message.offset
    run.judge()
    return Refolded(
        records=tuple(run.records),
        decisions=tuple(run.decisions),
        commands=tuple(run.commands),
        hits=tuple(_hits(recording.events)),
        differences=tuple(run.differences),
    )


@dataclass(frozen=True, slots=True)
class _DetectOutput:
    """One record that detect sends at an event. The event covers the offsets above `after` up to `offset`."""

    after: int
    offset: int
    at_ms: int
    send: Send


class _FoldedPartition:
    """The state of one partition, which it folds as a worker does."""

    def __init__(self, fold: Fold, source: RecordingSource, *, marked: bool = False) -> None:
        self._fold = fold
        self._marked = marked
        self.states: dict[bytes, Fields] = {PARTITION: beginning(source.cut_ms), OWN: {}}

    def take(self, message: Message) -> list[Send]:
        batch = Batch(self._fold, self.states, message.offset - 1, _DEAD, marked=self._marked)
        message = replace(message, now_ms=batch.now_ms(message.timestamp_ms))
        for key in batch.missing(message):
            batch.states[key] = {}
        where = f"{message.topic}/{message.partition}/{message.offset}"
        try:
            if not batch.apply(message):
                raise UsageError(batch.stopped, where=where, remedy="upgrade this midwatch")
        except ContentMissing as error:
            reason = f"the recording lacks the bundle {error.content}, which is in force from here on"
            raise UsageError(reason, where=where, remedy="export the job again") from error
        return [send for _, send in batch.outgoing]


@dataclass(slots=True)
class _JobRefold:
    recording: Recording
    book: Rulebook
    contents: Mapping[str, Content]
    detected: list[_DetectOutput] = field(default_factory=list)
    records: list[IncidentRecord] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    _decide: _FoldedPartition = field(init=False)
    _matched: int = 0  # records of `detected` that were compared already

    def __post_init__(self) -> None:
        fold = DecideFold(self.book, _DECISIONS, _COMMANDS, self.contents)
        self._decide = _FoldedPartition(fold, self.recording.head.incidents, marked=True)

    def judge(self) -> None:
        """Fold the topic `incidents` from its first record. Its records come from events where those are."""
        events = self.recording.head.events
        source, highest = f"{events.topic}/{events.partition}".encode(), ids.entry_id(-1, 0)
        for message in self.recording.incidents:
            entry = _entry(message, source)
            if entry is not None and entry <= highest:
                continue  # a copy: detect sent it again after a kill
            if entry is None or ids.input_offset(entry) < events.first_offset:
                self._take(message)
            else:
                self._derived(message, ids.input_offset(entry))
            highest = entry or highest
        while self._matched < len(self.detected):
            self._unwritten(self.detected[self._matched])

    def _derived(self, written: Message, offset: int) -> None:
        while self._matched < len(self.detected) and self.detected[self._matched].offset < offset:
            self._unwritten(self.detected[self._matched])
        output = self.detected[self._matched] if self._matched < len(self.detected) else None
        place = f"incidents/{written.partition}/{written.offset}"
        if output is None or output.after >= offset:
            self.differences.append(f"{place}: no event leads to {_name(written.value)}")
            return
        self._matched += 1
        if output.send.value != written.value and not _alike(
            _decoded(output.send.value), _decoded(written.value)
        ):
            self.differences.append(f"{place}: the refold derives another {_name(written.value)} here")
        self._take(replace(written, value=output.send.value))

    def _unwritten(self, output: _DetectOutput) -> None:
        """Note and fold a record of detect that the recorded topic `incidents` lacks."""
        self._matched += 1
        self.differences.append(
            f"events/{output.offset}: {_name(output.send.value)} follows from it, and incidents lack it"
        )
        incidents = self.recording.head.incidents
        self._take(
            Message(
                topic=incidents.topic,
                partition=incidents.partition,
                offset=-1,
                timestamp_ms=output.at_ms,
                now_ms=output.at_ms,
                key=output.send.key,
                value=output.send.value,
            )
        )

    def _take(self, message: Message) -> None:
        if message.key is not None and (incident := _decoded(message.value)) is not None:
            self.records.append(incident)
        for send in self._decide.take(message):
            record = codec.decode(send.value or b"") if send.topic in (_DECISIONS, _COMMANDS) else None
            if isinstance(record, Decision):
                self.decisions.append(record)
            elif isinstance(record, Command):
                self.commands.append(record)


def _entry(message: Message, source: bytes) -> ids.EntryId | None:
    for name, value in message.headers:
        if name == ids.HEADER:
            sender, entry = ids.parse_id(value)
            return entry if sender == source else None
    return None


def _decoded(value: bytes | None) -> IncidentRecord | None:
    try:
        record: IncidentRecord = codec.decode(value or b"")
    except Exception:  # the folds report what is wrong with it
        return None
    return record


def _alike(derived: IncidentRecord | None, written: IncidentRecord | None) -> bool:
    """Whether both are the same record, but for what an older midwatch did not write."""
    if isinstance(derived, Incident) and isinstance(written, Incident) and not written.verdict.chance:
        derived = replace(derived, verdict=replace(derived.verdict, chance=UNSET))
        derived = replace(derived, first_step_s=written.first_step_s)
    return derived == written


def _name(value: bytes | None) -> str:
    record = _decoded(value)
    if record is None:
        return "unreadable record"
    body = record.record if isinstance(record, Forwarded) else record
    state = getattr(body, "state", "") or getattr(body, "kind", "")
    return f"{type(body).__name__}{f' ({state})' if state else ''}"


def _hits(events: Sequence[Message]) -> Iterator[Hit]:
    for message in events:
        record = _decoded(message.value)
        if isinstance(record, Hits):
            yield from record.hits
