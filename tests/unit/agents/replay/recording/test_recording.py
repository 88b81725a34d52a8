"""A recording of one job says what the stream of many jobs said of it, field by field."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from house.cases import cases
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.recording.recording_file import Recording, lines_of, read
from midwatch.agents.replay.recording.refold import Refolded, refold
from midwatch.agents.replay.recording.refold_output import as_plain
from midwatch.agents.rulesets.content import bundle
from midwatch.agents.rulesets.outcomes import counts_hash
from midwatch.rules.model import Phase
from midwatch.streams.errors import UsageError
from midwatch.streams.records import (
    Activation,
    Event,
    Heartbeat,
    Incident,
    Origin,
    PersonAct,
    RuleBundle,
    SchedulerFact,
    Tick,
    Verdict,
    codec,
)
from midwatch.streams.worker.fold import Message
from midwatch.streams.worker.tables import ids
from unit.agents.detect.incident.scene import FIRST, JOB, START_S, Scene
from unit.agents.replay.recording.stream import LIMITS, Stream, book

OTHER = "local:bob/gpt"


class Both(Scene):
    """A scene whose events also go into a stream that another job shares."""

    stream: Stream

    def say(self, event: Event):  # type: ignore[no-untyped-def]  # the scene's own
        self.stream.say(event, int((START_S + self.now) * 1000), JOB)
        return super().say(event)


def _scene(nodes: tuple[str, ...] = ("n0",)) -> Both:
    scene = Both(nodes=nodes, limits=LIMITS)
    scene.stream = Stream()
    scene.spec()
    scene.train(range(1, 21))
    return scene


def _other(stream: Stream, at_s: float, sequence: int) -> None:
    beat = Heartbeat(
        Origin(OTHER, "n9", 1, "local:9:9", "b", "s"), sequence, 1.0, float(sequence), 5.0, True, 0
    )
    stream.say(beat, int((START_S + at_s) * 1000), OTHER)


def _again(recording: Recording) -> Refolded:
    through_a_file = read(list(lines_of(recording)), "test")
    assert through_a_file == recording
    return refold(through_a_file, LIMITS, book())


def _same(stream: Stream) -> Refolded:
    done = _again(stream.recording(JOB))
    assert list(done.records) == stream.incidents_of(JOB)
    assert list(done.decisions) == stream.decisions_of(JOB)
    assert done.differences == ()
    return done


def test_an_end_and_its_restart_are_told_again_field_by_field() -> None:
    scene = _scene()
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words()
    scene.accepted(scene.commands[-1])
    scene.done(scene.commands[-1], "local:200:1")
    done = _same(scene.stream)
    assert [d.action for d in done.decisions][-1] == "restart"
    assert [c.id for c in done.commands] == [c.id for c in scene.commands]


@pytest.mark.parametrize("by", ["tick", "another job"])
def test_a_timer_that_only_others_let_fire_fires_in_the_recording(by: str) -> None:
    scene = _scene(("n0", "n1"))
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words("n0")
    for second in range(1, 200):
        at_ms = int((START_S + scene.now + second) * 1000)
        if by == "tick":
            scene.stream.say(Tick(0), at_ms, None)
        else:
            _other(scene.stream, scene.now + second, second)
    done = _same(scene.stream)
    verdict = next(r.verdict for r in reversed(done.records) if isinstance(r, Incident))
    assert verdict.given_up == ("n1",)
    others = [m for m in scene.stream.recording(JOB).events if m.key is None]
    assert len(others) == 1, "one tick stands for all of them"


def test_activations_are_kept_and_other_jobs_are_not() -> None:
    scene = _scene()
    _other(scene.stream, scene.now, 1)
    hash_ = scene.stream.publish(RuleBundle(()))
    scene.stream.say(Activation(hash_, 7), int((START_S + scene.now) * 1000), None)
    _other(scene.stream, scene.now, 2)
    text = b"\n".join(lines_of(scene.stream.recording(JOB)))
    assert b'"activation"' in text
    assert OTHER.encode() not in text


@pytest.mark.capability("C-8")
def test_a_job_across_two_bundles_is_judged_again_by_each_from_its_own_offset_on() -> None:
    scene = Both(nodes=("n0",), limits=LIMITS)
    scene.stream = Stream()
    patient = scene.stream.publish(bundle((), {Phase.TRAINING: 600.0}, (), {}, any_line=False))
    never = replace(load_policy("verdict"), clauses={}, description="never")
    strict = scene.stream.publish(bundle((), {Phase.TRAINING: 20.0}, (never,), {}, any_line=False))
    scene.stream.activate(patient, 3, int(START_S * 1000))
    scene.spec()
    scene.train(range(1, 21))
    scene.beats(seconds=300)
    assert scene.stream.incidents_of(JOB)[1:] == [], "the silence is within the limit of the first bundle"
    scene.stream.activate(strict, 8, int((START_S + scene.now) * 1000))
    scene.stream.activate(patient, 3, int((START_S + scene.now) * 1000))
    scene.beats(seconds=30)
    done = _same(scene.stream)
    (incident,) = [r for r in done.records if isinstance(r, Incident) and r.state == "settled"]
    assert incident.verdict.mode == "stall"
    assert [(d.action, d.policy) for d in done.decisions] == [("stop", "verdict")]
    with pytest.raises(UsageError, match="lacks the bundle"):
        refold(replace(scene.stream.recording(JOB), rules=()), LIMITS, book())


@pytest.mark.capability("N-7")
def test_own_outcomes_come_with_the_bundle_and_a_recording_gives_the_same_chance() -> None:
    def ended(outcomes: dict[str, tuple[int, int]] | None) -> tuple[Stream, Verdict]:
        scene = _scene()
        record = bundle((), {}, (), {}, any_line=False, outcomes=outcomes)
        scene.stream.activate(scene.stream.publish(record), 1, int((START_S + scene.now) * 1000))
        scene.line("nccl", transient=True)
        scene.ended()
        scene.last_words()
        last = scene.stream.incidents_of(JOB)[-1]
        assert isinstance(last, Incident)
        return scene.stream, last.verdict

    counts = {"nccl/transient/stepped": (1, 9)}
    (plain, usual), (stream, own) = ended(None), ended(counts)
    assert usual.chance
    assert own.chance
    assert (own.chance.own_passed, own.chance.own) == (1, 9)
    assert own.chance.outcomes == counts_hash(counts)
    assert own.chance.share < usual.chance.share
    assert replace(own, chance=UNSET, bundle="") == replace(usual, chance=UNSET, bundle="")
    for each in (plain, stream):
        assert _same(each).differences == ()


def test_a_recording_of_an_older_midwatch_without_chances_does_not_count_as_different() -> None:
    scene = _scene()
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words()
    recording = scene.stream.recording(JOB)

    def older(message: Message) -> Message:
        record = codec.decode(message.value or b"")
        if not isinstance(record, Incident):
            return message
        verdict = replace(record.verdict, chance=UNSET)
        return replace(message, value=codec.encode(replace(record, verdict=verdict, first_step_s=UNSET)))

    old = replace(recording, incidents=tuple(map(older, recording.incidents)))
    assert all(b'"chance"' not in (message.value or b"") for message in old.incidents)
    done = _again(old)
    assert done.differences == ()
    assert next(r.verdict.chance for r in done.records if isinstance(r, Incident) and r.state == "settled")


def test_a_bundle_in_a_recording_that_is_not_what_its_hash_says_is_refused() -> None:
    scene = _scene()
    hash_ = scene.stream.publish(RuleBundle((), any_line=True))
    scene.stream.activate(hash_, 1, int(START_S * 1000))
    recording = scene.stream.recording(JOB)
    (message,) = recording.rules
    forged = replace(message, value=(message.value or b"").replace(b"true", b"false"))
    with pytest.raises(UsageError, match="another hash"):
        refold(replace(recording, rules=(forged,)), LIMITS, book())


def test_a_record_that_was_set_aside_is_set_aside_again() -> None:
    scene = _scene()
    now = int((START_S + scene.now) * 1000)
    scene.stream.say(b'{"record":"beat","v":1,"nonsense":\n true}', now, JOB)
    scene.stream.say(b"\xff\x00 no json", now, JOB)
    scene.ended()
    scene.last_words()
    _same(scene.stream)


def test_what_was_sent_twice_counts_once() -> None:
    scene = _scene()
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words()
    for message in list(scene.stream.incidents.log):
        scene.stream.tell(message.key, message.value or b"", message.timestamp_ms + 5000, message.headers)
    _same(scene.stream)


def test_a_forged_verdict_is_told_apart() -> None:
    scene = _scene()
    scene.line("oom", transient=False)
    scene.ended()
    scene.last_words()
    recording = scene.stream.recording(JOB)
    forged = tuple(
        replace(m, value=(m.value or b"").replace(b'"error_type":"oom"', b'"error_type":"nccl"'))
        for m in recording.incidents
    )
    done = refold(replace(recording, incidents=forged), LIMITS, book())
    assert any("derives another" in each for each in done.differences)
    assert [d.action for d in done.decisions][-1] == "stop"
    fewer = refold(replace(recording, incidents=recording.incidents[:1]), LIMITS, book())
    assert any("incidents lack it" in each for each in fewer.differences)
    unfounded = refold(replace(recording, events=recording.events[:3]), LIMITS, book())
    assert any("no event leads to Incident" in each for each in unfounded.differences)


def test_a_recording_whose_first_events_are_deleted_goes_on_from_a_carry() -> None:
    scene = _scene()
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words()
    scene.accepted(scene.commands[-1])
    scene.done(scene.commands[-1], "local:200:1")
    scene.incarnation = "local:200:1"
    scene.train(range(11, 31))
    scene.line("nccl", transient=True)
    scene.ended(incarnation="local:200:1")
    scene.last_words()
    recording = scene.stream.recording(JOB)
    carry = [m for m in recording.events if b'"record":"carry"' in (m.value or b"")][-1]
    kept = tuple(m for m in recording.events if m.offset >= carry.offset)
    source = replace(recording.head.events, first_offset=carry.offset, cut_ms=carry.timestamp_ms)
    done = _again(replace(recording, head=replace(recording.head, events=source), events=kept))
    assert list(done.decisions) == scene.stream.decisions_of(JOB)
    assert done.differences == ()


@settings(max_examples=cases(40))
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("other"), st.floats(0.0, 9.0)),
            st.tuples(st.just("tick"), st.floats(0.0, 130.0)),
            st.tuples(st.just("beat"), st.sampled_from(["n0", "n1"])),
            st.tuples(st.just("line"), st.sampled_from(["oom", "nccl", "exception"])),
            st.tuples(st.just("step"), st.integers(1, 40)),
            st.tuples(st.just("end"), st.integers(0, 2)),
            st.tuples(st.just("act"), st.sampled_from(["arm", "disarm"])),
            st.tuples(st.just("start"), st.integers(2, 4)),
        ),
        max_size=30,
    )
)
def test_whatever_happens_the_recording_equals_the_stream(happens: list[tuple[str, object]]) -> None:
    scene = _scene(("n0", "n1"))
    for number, (what, how) in enumerate(happens, 1):
        match what, how:
            case "other", float(pause):
                scene.now += pause
                _other(scene.stream, scene.now, number)
            case "tick", float(pause):
                scene.now += pause
                scene.stream.say(Tick(0), int((START_S + scene.now) * 1000), None)
            case "beat", str(node):
                scene.beat(node)
            case "line", str(kind):
                scene.line(kind, transient=kind == "nccl", node="n1")
            case "step", int(step):
                scene.progress(step)
            case "end", int(code):
                scene.ended(exit_code=code)
            case "act", str(act):
                scene.say(PersonAct(JOB, act, "ada", 1.0))
            case "start", int(start):
                scene.incarnation = f"local:{start}00:1"
    _same(scene.stream)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "its first line is not the head"),
        ([b"2026-01-01 iteration 5"], "its first line is not the head"),
        ([b'{"record":"beat"}'], "its first line is not the head"),
        ([b'{"recording":99}'], "version 99"),
        ([b'{"recording":1,"job":"x"}'], "missing required field"),
    ],
)
def test_what_is_no_recording_is_refused_with_a_remedy(lines: list[bytes], says: str) -> None:
    with pytest.raises(UsageError, match=says) as raised:
        read(lines, "file")
    assert "midwatch export" in raised.value.remedy


def test_a_broken_line_is_named() -> None:
    lines = list(lines_of(_scene().stream.recording(JOB)))
    with pytest.raises(UsageError, match="line 3 is not a record"):
        read([*lines[:2], b'{"topic":"logs"}', *lines[2:]], "file")


def test_a_newer_record_says_where_and_what_to_do() -> None:
    recording = _scene().stream.recording(JOB)
    newer = replace(recording.events[0], value=b'{"record":"moon","v":1}')
    with pytest.raises(UsageError, match="unknown kind") as raised:
        refold(replace(recording, events=(newer, *recording.events[1:])), LIMITS, book())
    assert raised.value.remedy == "upgrade this midwatch"


def test_the_report_is_that_of_a_log_file_with_everything_whole_beside_it() -> None:
    scene = _scene()
    scene.line("oom", transient=False)
    scene.ended()
    scene.last_words()
    recording = scene.stream.recording(JOB)
    said = as_plain(recording, _again(recording))
    assert (said["version"], said["verdict"]["error_type"], said["decision"]["action"]) == (1, "oom", "stop")
    assert said["incidents"][-1]["verdict"]["root_line"] == said["verdict"]["root_line"]
    assert said["decisions"][-1]["reason"] == said["decision"]["reason"]
    assert said["differences"] == []
    assert isinstance(scene.stream.incidents.log[0].headers[0], tuple)
    assert scene.stream.incidents.log[0].headers[0][0] == ids.HEADER


def test_a_job_of_which_nothing_ended_is_told_as_such() -> None:
    stream = Stream()
    stream.say(SchedulerFact(JOB, FIRST, "1", "", "running", False), 1000, JOB)
    recording = stream.recording(JOB)
    said = as_plain(recording, _again(recording))
    assert (said["verdict"]["state"], said["decision"]["action"]) == ("unknown", "none")
