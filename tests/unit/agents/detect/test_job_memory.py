"""A fold that remembers the job gives the bytes of one that reads the job anew for each record."""

from __future__ import annotations

from collections.abc import Mapping

from bench.last_words import INCARNATION, JOB, chunk_of, origin
from midwatch.agents.detect.fold import DetectFold, job_of
from midwatch.agents.detect.incident.state import Job, JobState
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.match.record_size import encoded
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.compiler import compile_rules
from midwatch.streams.records import Heartbeat, Held, Hit, Line, SchedulerFact, SpecEvent, codec
from midwatch.streams.worker.fold import PARTITION, Message

KEY = JOB.encode()
Fields = dict[bytes, bytes]


def records() -> list[bytes]:
    """Heartbeats, the last lines of 12 nodes with heartbeats in between, and the end."""
    nodes = 12
    rules = compile_rules(load_bundle("default").rules, scan=False)
    found = [match(chunk_of(node, nodes, 8), rules, "bundle", 1_795_000_160_000) for node in range(nodes)]
    values = [codec.encode(SpecEvent(JOB, "spec", "verdict", True, nodes, "/ckpt"))]
    for sequence in range(1, 4):
        for node, hits in enumerate(found):
            beat = Heartbeat(
                origin(node, nodes), sequence, 5.0 * sequence, 5.0 * sequence, 5.0, at_end=True, backlog=0,
                alive=sequence < 3, final=sequence == 3, logged_ms=5000 * sequence,
            )  # fmt: skip
            values.append(codec.encode(beat))
            if sequence == 2 and hits is not None:
                values.append(encoded(hits))
    end = SchedulerFact(JOB, INCARNATION, "4096", "running", "failed", ended=True, mode="crash", exit_code=1)
    return [*values, codec.encode(end)]


def written(fields: Fields, changed: Mapping[bytes, bytes | None]) -> Fields:
    """New fields after a write."""
    kept = {name: value for name, value in fields.items() if name not in changed}
    return kept | {name: value for name, value in changed.items() if value is not None}


def fold() -> DetectFold:
    """A fold that remembers nothing yet."""
    return DetectFold(WatchLimits(), "incidents", owner_of=lambda _: 0)


def test_remembering_changes_neither_state_nor_sends() -> None:
    remembering = fold()
    states: dict[bytes, Fields] = {PARTITION: {}, KEY: {}}
    before = dict(states), Message("events", 0, 0, 0, 0, KEY, None)
    for offset, value in enumerate(records()):
        now = 1_795_000_160_000 + 100 * offset
        message = Message("events", 0, offset, now, now, KEY, value)
        if offset % 5 == 4:
            # A batch was rolled back: an older record meets the fields of that time once more.
            assert remembering.apply(*before) == fold().apply(*before)
        applied = remembering.apply(states, message)
        assert applied == fold().apply(states, message)
        before = dict(states), message
        states = {key: written(fields, applied.changed.get(key, {})) for key, fields in states.items()}
        assert remembering.memory.job(KEY, states[KEY]) == job_of(states[KEY])


def test_a_job_counts_only_for_equal_fields_and_few_are_remembered() -> None:
    memory = fold().memory
    empty = memory.job(b"a", {})
    assert memory.job(b"a", {}) is empty
    blob = codec.state_to_bytes(empty.state).replace(b'"attempt":0', b'"attempt":7')
    assert memory.job(b"a", {b"job": blob}).state.attempt == 7
    assert memory.job(b"a", {}).state.attempt == 0
    for number in range(1000):
        memory.job(b"%d" % number, {})
    assert len(memory.known) < 100


def held(line: str, step: int) -> Held:
    """A held line."""
    found = Line(line, number=step, offset=0, path="/logs/out.log", time=1.0, node="n0", rank=3)
    return Held(Hit("rule", "cause", "exception", "code", "error", None, found, step, "file"), step, 0)


def test_a_remembered_line_is_written_as_one_written_anew() -> None:
    memory = fold().memory
    first, second, third = held('a "quoted" line', 1), held("Zeile ü", 2), held("last", 3)
    for lines in ((first,), (first, second), (second, first, second), (), (third, first)):
        state = JobState(job="toy", held=lines, noted=lines[:1], step=7)
        assert memory.encoded(KEY, state) == codec.state_to_bytes(state)
    assert len(memory.written[KEY].lines) == 2  # of lines that are held no longer nothing stays


def test_what_was_written_goes_with_its_job() -> None:
    memory = fold().memory
    for number in range(1000):
        key = b"%d" % number
        state = JobState(job="toy", held=(held("line", number),))
        memory.keep(key, {b"job": memory.encoded(key, state)}, Job(state))
    assert set(memory.written) == set(memory.known)
