"""A fold may begin at a carry, and nothing is done before one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.decide.decision import decide
from midwatch.agents.decide.state import DecideState
from midwatch.agents.detect.incident.fold import fire_due, fold_event, fold_with_timers
from midwatch.agents.detect.incident.snapshots import snapshot_of
from midwatch.agents.detect.incident.state import Job, JobState, NodeState
from midwatch.agents.detect.incident.turn import Turn
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import (
    Decision,
    Event,
    Forwarded,
    Incident,
    Outcome,
    PersonAct,
    SchedulerFact,
    Snapshot,
    SpecEvent,
    codec,
)
from unit.agents.detect.incident.scene import FIRST, JOB, START_S, Scene

LIMITS = WatchLimits(training=60.0, startup=300.0)
SECOND = "local:200:1"


class Log:
    """A topic with one job in it: what was said stays, and carries are appended as the worker would."""

    def __init__(self) -> None:
        self.records: list[tuple[int, Event]] = []
        self.job = Job(JobState())
        self.told: list[object] = []

    def take(self, event: Event, now_s: float) -> None:
        now_ms = int((START_S + now_s) * 1000)
        self.records.append((now_ms, event))
        done = fold_with_timers(self.job, JOB, event, now_ms, LIMITS)
        self.job = done.job
        self.told += done.records
        for snapshot in done.snapshots:
            self.take(snapshot, now_s)

    @property
    def snapshots(self) -> list[Snapshot]:
        return [event for _, event in self.records if isinstance(event, Snapshot)]

    def refold(self, first: int) -> tuple[Job, list[object]]:
        """A fold of the log once all records before `first` were deleted from it."""
        job, told = Job(JobState()), list[object]()
        for now_ms, event in self.records[first:]:
            again = codec.decode(codec.encode(event))
            done = fold_with_timers(job, JOB, again, now_ms, LIMITS, cut=first > 0)
            job, told = done.job, [*told, *done.records]
        return job, told


def _staged(log: Log) -> Scene:
    """A scene whose events go through the log."""
    scene = Scene(limits=LIMITS)
    say = scene.say

    def said(event: Event) -> object:
        log.take(event, scene.now)
        return say(event)

    scene.say = said  # type: ignore[method-assign,assignment]  # the log listens
    return scene


def _second_attempt(scene: Scene) -> None:
    scene.spec()
    scene.train(range(1, 21))
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words()
    command = scene.commands[-1]
    scene.accepted(command)
    scene.say(
        Outcome(JOB, command.id, 1, "restart", "done", "ok", new_incarnation=SECOND, checkpoint_step=10)
    )
    scene.incarnation = SECOND
    scene.sequences.clear()
    scene.train(range(11, 16))


def test_each_attempt_begins_with_a_carry() -> None:
    log = Log()
    _second_attempt(_staged(log))
    assert [(c.attempt, c.incarnation, c.checkpoint_step) for c in log.snapshots] == [
        (1, FIRST, None),
        (2, SECOND, 10),
    ]
    assert log.snapshots[1].incarnations == {FIRST: 1, SECOND: 2}
    assert log.snapshots[1].spec is not None


def test_a_live_job_is_summed_up_every_day_and_one_that_ended_is_not() -> None:
    log = Log()
    scene = _staged(log)
    scene.spec()
    scene.train(range(1, 21))
    days = 3
    for _ in range(days):
        scene.now += 86_400
        scene.progress(scene.watch.job.state.step + 1)  # type: ignore[operator]  # it made steps
        scene.beat("n0")
    assert len(log.snapshots) == 1 + days
    scene.ended(exit_code=0)
    scene.last_words()
    scene.now += 86_400 * 3
    fired = fire_due(log.job, int((START_S + scene.now) * 1000), LIMITS)
    assert fired.snapshots == ()


@pytest.mark.parametrize("more", [0, 3, 40])
def test_a_fold_that_begins_at_a_carry_ends_in_the_same_state(more: int) -> None:
    """Whatever of the attempt's first lines is still there before the carry."""
    log = Log()
    scene = _staged(log)
    _second_attempt(scene)
    at = next(i for i, (_, e) in enumerate(log.records) if isinstance(e, Snapshot) and e.attempt == 2)
    scene.line("nccl", transient=True)
    scene.ended(incarnation=SECOND)
    scene.last_words()
    job, told = log.refold(max(at - more, 1))
    settled = [r for r in told if isinstance(r, Incident) and r.state == "settled" and r.attempt == 2]
    full = [r for r in log.told if isinstance(r, Incident) and r.state == "settled" and r.attempt == 2]
    assert settled == full
    mine = replace(job.state, awaited_ms=0, carry_ms=None, started_ms=0)
    assert mine == replace(log.job.state, awaited_ms=0, carry_ms=None, started_ms=0)


def test_a_hang_is_found_by_a_fold_that_began_in_the_middle() -> None:
    log = Log()
    scene = _staged(log)
    _second_attempt(scene)
    scene.now += 86_400
    scene.progress(16)
    scene.beat("n0")
    first = next(i for i, (_, e) in enumerate(log.records) if e is log.snapshots[-1])
    scene.train(range(17, 25))
    scene.beats(seconds=120)
    _, told = log.refold(first)
    hung = [r for r in told if isinstance(r, Incident) and r.state == "settled"]
    assert [(r.attempt, r.verdict.mode, r.cut) for r in hung] == [(2, "stall", False)]


def test_who_left_the_others_before_the_carry_is_still_named_after_it() -> None:
    log = Log()
    scene = _staged(log)
    _second_attempt(scene)
    scene.line("", role="context", mode="success", text="stopping training early")
    scene.now += 86_400
    scene.beat("n0")
    first = next(i for i, (_, e) in enumerate(log.records) if e is log.snapshots[-1])
    scene.line("communication", role="consequence")
    scene.ended(incarnation=SECOND)
    scene.last_words()
    _, told = log.refold(first)
    roots = [r.verdict.root_line for r in told if isinstance(r, Incident) and r.state == "settled"]
    assert roots == ["stopping training early"]


def test_what_was_noted_before_the_carry_still_explains_the_end_after_it() -> None:
    log = Log()
    scene = _staged(log)
    _second_attempt(scene)
    scene.line("storage", role="context", text="the toy is late")
    scene.now += 86_400
    scene.beat("n0")
    first = next(i for i, (_, e) in enumerate(log.records) if e is log.snapshots[-1])
    scene.ended(incarnation=SECOND)
    scene.last_words()
    _, told = log.refold(first)
    roots = [r.verdict.root_line for r in told if isinstance(r, Incident) and r.state == "settled"]
    assert roots == ["the toy is late"]


def test_a_job_without_its_beginning_is_observed_only_and_the_decision_says_why() -> None:
    log = Log()
    scene = _staged(log)
    _second_attempt(scene)
    snapshot = [i for i, (_, e) in enumerate(log.records) if isinstance(e, Snapshot)][-1]
    scene.line("nccl", transient=True)
    scene.ended(incarnation=SECOND)
    scene.last_words()
    assert scene.actions()[-1] == "restart"
    assert _judged(log.refold(snapshot)[1], scene)[-1].action == "restart"
    held = _judged(log.refold(snapshot + 1)[1], scene)[-1]
    assert (held.action, held.command) == ("hold", "")
    assert "no snapshot sums up what came before" in held.reason
    assert "nccl is transient" in held.near_misses


def _judged(told: list[object], scene: Scene) -> list[Decision]:
    """What decide says, which knows the job's spec and nothing else of it."""
    spec = SpecEvent(JOB, "spec-hash", scene.policy, True, 1, "/ckpt")
    state = decide(DecideState(), Forwarded(spec), 1, scene.book).state
    decisions: list[Decision] = []
    for record in told:
        turn = decide(state, record, 1, scene.book)  # type: ignore[arg-type]  # detect's records only
        state, decisions = turn.state, [*decisions, *turn.decisions]
    return decisions


def _cut_incident(event: Event, *more: Event) -> Incident:
    job, records = Job(JobState()), list[object]()
    ended = SchedulerFact(JOB, FIRST, "100", "running", "failed", True, mode="crash", exit_code=1)
    for number, each in enumerate((event, *more, ended)):
        done = fold_with_timers(job, JOB, each, 1000 + number, LIMITS, cut=True)
        job, records = done.job, [*records, *done.records]
    done = fire_due(job, 10**9, LIMITS)
    return next(r for r in (*done.records, *records) if isinstance(r, Incident) and r.state == "settled")


def test_a_person_who_arms_the_job_answers_for_its_past() -> None:
    running = SchedulerFact(JOB, FIRST, "100", "", "running", False)
    assert _cut_incident(running).cut
    assert not _cut_incident(running, PersonAct(JOB, "arm", "ada", 1.0)).cut


def test_a_spec_is_written_at_a_start_so_nothing_is_missing_before_it() -> None:
    spec = SpecEvent(JOB, "hash", "verdict", True, 1, "/ckpt", incarnation=FIRST)
    assert not _cut_incident(spec).cut


def test_a_carry_repeats_nothing_and_changes_nothing_for_who_knows_the_job() -> None:
    log = Log()
    scene = _staged(log)
    _second_attempt(scene)
    for snapshot in log.snapshots:
        done = fold_event(log.job, JOB, snapshot, int((START_S + scene.now) * 1000), LIMITS)
        assert done.records == ()
        assert done.snapshots == ()
        assert replace(done.job.state, due_ms=None) == replace(log.job.state, due_ms=None)


def test_a_carry_of_a_vast_job_still_fits_into_a_record() -> None:
    log = Log()
    nodes = tuple(f"node-{n:05}" for n in range(6000))
    scene = _staged(log)
    scene.nodes = nodes
    scene.spec()
    for node in nodes[:50]:
        scene.beat(node)
    state = log.job.state
    vast = {node: NodeState(FIRST, judged={f"{n}:{node}": n for n in range(20)}) for node in nodes}
    snapshot = snapshot_of(Turn(Job(state, vast), LIMITS, DETECTORS, 1))
    assert len(codec.encode(snapshot)) < 900_000
    assert snapshot.attempt == 1


def test_lines_that_were_judged_before_the_carry_are_not_judged_again() -> None:
    """A new shipper may read an old file from its beginning, long after its lines fell out of the log."""
    log = Log()
    scene = _staged(log)
    _second_attempt(scene)
    first = next(i for i, (_, e) in enumerate(log.records) if isinstance(e, Snapshot) and e.attempt == 2)
    scene.offsets["n0"] = 3  # below what the first attempt had printed
    scene.line("oom", transient=False)
    job, told = log.refold(first)
    assert job.state.held == ()
    assert not any(isinstance(record, Incident) for record in told)


def test_a_job_without_progress_is_summed_up_every_ten_minutes_while_its_nodes_are_heard() -> None:
    """The list of jobs reads a quarter of an hour of events, and finds number and step there."""
    log = Log()
    scene = _staged(log)
    scene.spec(limits={"evaluation": 86_400.0})
    scene.train(range(1, 21))
    scene.progress(20, phase="evaluation")
    scene.beats(seconds=3600)
    assert [(s.attempt, s.step) for s in log.snapshots] == [(1, 1), *[(1, 20)] * 6]
    assert log.told == [record for record in log.told if isinstance(record, Forwarded)]
    scene.now += 7200
    scene.spec()
    assert len(log.snapshots) == 7, "nobody is heard any more"


def test_a_job_that_makes_steps_is_summed_up_once_a_day() -> None:
    log = Log()
    scene = _staged(log)
    scene.spec()
    for number in range(1, 200):
        scene.progress(number)
        scene.beats(seconds=20)
    assert len(log.snapshots) == 1
