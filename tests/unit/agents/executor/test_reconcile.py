"""However the executor, its twin and the scheduler die, one new job runs, and only after the old one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.agents.executor.reconcile import (
    LOCAL,
    SLURM,
    Cancel,
    Finish,
    Memory,
    PendingCommand,
    Release,
    Remember,
    Step,
    Submit,
    Timing,
    View,
    Wait,
    answered,
    late_duplicates,
    memory,
    next_step,
)
from midwatch.agents.schedulers.base import Hint, SchedulerEpoch, SchedulerJob, StartState
from midwatch.streams.records.identity import native_id
from slurm_lab.world import KEY, OLD_ID, Store, World

OLD = f"slurm:{OLD_ID}:0"
RESTART = PendingCommand(OLD, KEY)


class Executor:
    """The shell around the core, cut into the steps between which it can be killed."""

    def __init__(self, world: World, store: Store, timing: Timing) -> None:
        self.world, self.store, self.timing = world, store, timing
        self.finished: Finish | None = None
        self.delay = 0.0
        self.rest = self._passes()

    def advance(self) -> None:
        next(self.rest)

    def kill(self) -> None:
        """All that it held in its head is gone; what it kept is not."""
        self.rest = self._passes()

    def _passes(self) -> Iterator[None]:
        while True:
            known, version = memory(self.store.value), self.store.version
            yield
            if self.world.frozen:
                yield
                continue
            view = self._look(known)
            yield
            step = next_step(RESTART, known, view, self.timing)
            if isinstance(step, Finish):
                self.finished = step
            kept = getattr(step, "memory", None)
            if kept is not None:
                if not self.store.keep(kept.words(), version):
                    continue
                yield
            self._act(step)
            yield

    def _look(self, known: Memory) -> View:
        world = self.world
        ours = world.ours()
        alone = known.winner and known.winner not in {job.native_id for job in ours}
        winner = world.state(known.winner) if alone else None
        return View(world.now, world.epoch(), True, world.state(str(OLD_ID)), ours, winner)

    def _act(self, step: Step) -> None:
        match step:
            case Submit():
                self.world.submit(self.delay)
            case Release():
                self.world.release(native_id(step.incarnation), KEY)
            case Cancel():
                self.world.cancel(native_id(step.incarnation), step.key)
            case _:
                pass


def settle(world: World, executor: Executor) -> None:
    """No more faults: the executor works until it says that it is finished."""
    world.frozen = False
    executor.kill()
    executor.finished = None
    for _ in range(4000):
        if executor.finished:
            return
        executor.advance()
        world.pass_time(0.25)
    raise AssertionError(f"not finished: {executor.store.value} {world.jobs}")


# (event, which executor, how much): `work` is so many steps of an executor with a quarter second between
EVENTS = st.one_of(
    st.tuples(st.just("work"), st.integers(0, 1), st.integers(1, 60)),
    st.tuples(st.just("work"), st.integers(0, 1), st.integers(1, 12)),
    st.tuples(st.just("pass"), st.just(0), st.sampled_from([1, 6, 30, 120])),
    st.tuples(st.just("kill"), st.integers(0, 1), st.just(0)),
    st.tuples(st.sampled_from(["crash", "crash", "freeze", "old dies"]), st.just(0), st.just(0)),
)
Events = list[tuple[str, int, int]]


def play(events: Events, delays: list[float], executors: int, timing: Timing = SLURM) -> str:
    """Plays the faults, lets the executor finish in peace, crashes the scheduler again; what went wrong."""
    world, store = World(), Store()
    crew = [Executor(world, store, timing) for _ in range(executors)]
    for number, (event, who, amount) in enumerate(events):
        actor = crew[who % executors]
        actor.delay = delays[number % len(delays)]
        world.frozen = event == "freeze"
        match event:
            case "work":
                for _ in range(amount):
                    actor.advance()
                    world.pass_time(0.25)
            case "kill":
                actor.kill()
            case "pass":
                world.pass_time(amount)
            case "crash":
                world.crash()
            case "old dies":
                world.old_dies()
    settle(world, crew[0])
    world.crash()
    left = [job.state for job in world.jobs.values() if job.id in world.starts]
    if len(set(world.starts)) != 1:
        return f"{len(set(world.starts))} jobs were started: {world.starts}"
    if world.overlaps:
        return "two were alive at once"
    return "" if left and left != ["held"] else "the one that was started is lost"


DELAYS = st.lists(st.sampled_from([0.0, 0.3, 20.0]), min_size=1, max_size=5)


@settings(max_examples=cases(300))
@given(st.lists(EVENTS, max_size=40), DELAYS)
def test_one_executor_killed_anywhere_makes_exactly_one_start(events: Events, delays: list[float]) -> None:
    assert play(events, delays, executors=1) == ""


@settings(max_examples=cases(300))
@given(st.lists(EVENTS, max_size=40), DELAYS)
def test_two_executors_at_once_make_exactly_one_start(events: Events, delays: list[float]) -> None:
    assert play(events, delays, executors=2) == ""


@pytest.mark.parametrize("careless", ["durable", "confirm"])
def test_the_faults_are_strong_enough_to_catch_a_careless_reconciler(careless: str) -> None:
    """Without one of the waits, some order of faults starts two, or loses the one that it started."""
    hasty = replace(SLURM, durable=0.0) if careless == "durable" else replace(SLURM, confirm=0.0)
    # Any such order will do: to shrink it would take most of the time.
    quiet = settings(max_examples=3000, deadline=None, database=None, phases=[Phase.generate])
    faults = st.tuples(st.lists(EVENTS, max_size=40), DELAYS)
    harm = find(faults, lambda case: play(case[0], case[1], 2, hasty) != "", settings=quiet)
    events, delays = harm
    assert play(events, delays, executors=2) == ""


RUNNING, HELD, GONE = (
    StartState("running", "RUNNING"),
    StartState("held", "PENDING"),
    StartState("ended", "FAILED"),
)
CALM = SchedulerEpoch("boot", 3600.0)


def job(number: int, state: StartState) -> SchedulerJob:
    return SchedulerJob(str(number), f"slurm:{number}:0", state, KEY)


def view(old: StartState, *ours: SchedulerJob, at: float = 1000.0, **more: object) -> View:
    return replace(View(at, CALM, True, old, ours), **more)  # type: ignore[arg-type] # fields of View by name


def test_a_running_old_one_is_told_to_end_and_again_by_force() -> None:
    order = PendingCommand(OLD, "")
    first = next_step(order, Memory(), view(RUNNING), SLURM)
    assert isinstance(first, Cancel)
    assert (first.incarnation, first.force) == (OLD, False)
    assert isinstance(next_step(order, first.memory, view(RUNNING, at=1001), SLURM), Wait)
    later = next_step(order, first.memory, view(StartState("ending", "COMPLETING"), at=1125), SLURM)
    assert isinstance(later, Cancel)
    assert later.force
    assert next_step(order, first.memory, view(GONE, at=1003), SLURM) == Finish(
        "done", "the old start is failed"
    )


def test_an_unreadable_or_missing_old_one_is_not_taken_for_gone() -> None:
    order = PendingCommand(OLD, "")
    assert isinstance(next_step(order, Memory(), view(StartState("unknown")), SLURM), Wait)
    seen = next_step(order, Memory(), view(StartState("absent")), SLURM)
    assert isinstance(seen, Remember)
    assert isinstance(next_step(order, seen.memory, view(StartState("absent"), at=1009), SLURM), Wait)
    rebooted = view(StartState("absent"), at=1011, epoch=SchedulerEpoch("another boot", 2.0))
    assert isinstance(next_step(order, seen.memory, rebooted, SLURM), Remember)
    assert isinstance(next_step(order, seen.memory, view(StartState("absent"), at=1011), SLURM), Finish)


def test_a_twin_is_cancelled_while_it_is_held() -> None:
    known = Memory(winner="7", winner_at=999.0)
    step = next_step(RESTART, known, view(GONE, job(7, HELD), job(8, HELD)), SLURM)
    assert isinstance(step, Cancel)
    assert (step.incarnation, step.key) == ("slurm:8:0", KEY)
    assert late_duplicates(KEY, "7", [job(7, RUNNING), job(9, HELD), job(10, GONE)]) == ("slurm:9:0",)


def test_whoever_started_a_successor_first_is_given_way() -> None:
    known = Memory(winner="7", winner_at=999.0)
    step = next_step(RESTART, known, view(GONE, job(7, HELD), successor="slurm:1:1"), SLURM)
    assert isinstance(step, Cancel)
    assert step.incarnation == "slurm:7:0"
    ended = next_step(RESTART, known, view(GONE, job(7, GONE), successor="slurm:1:1"), SLURM)
    assert isinstance(ended, Finish)
    assert ended.result == "superseded"


def test_our_own_new_job_is_no_foreign_successor() -> None:
    known = Memory(winner="7", winner_at=900.0, released_at=950.0, quiet_at=960.0, quiet_epoch="boot")
    step = next_step(RESTART, known, view(GONE, job(7, RUNNING), successor="slurm:7:0"), SLURM)
    assert step == Finish("done", "7 is running", "slurm:7:0")


def test_a_job_that_was_let_go_and_is_forgotten_is_never_made_again() -> None:
    known = Memory(tried_at=900.0, winner="7", winner_at=900.0, released_at=950.0)
    seen = next_step(RESTART, known, view(GONE, winner=StartState("absent")), SLURM)
    assert isinstance(seen, Remember)
    step = next_step(RESTART, seen.memory, view(GONE, at=1011, winner=StartState("absent")), SLURM)
    assert isinstance(step, Finish)
    assert step.result == "failed"


def test_a_refusal_is_believed_the_third_time() -> None:
    known = Memory(tried_at=990.0)
    for _ in range(3):
        assert not isinstance(next_step(RESTART, known, view(GONE), SLURM), Finish)
        known = answered(known, Hint("refused", "invalid partition specified: nix"))
    assert next_step(RESTART, known, view(GONE), SLURM) == Finish(
        "failed", "invalid partition specified: nix", untouched=True
    )
    assert answered(known, Hint("unclear", "timed out")) == known


@pytest.mark.capability("S002-08")
def test_nothing_is_begun_before_its_time_or_after_it() -> None:
    early = replace(RESTART, not_before=1030.0)
    assert next_step(early, Memory(), view(GONE), SLURM) == Wait(30.0, "it may not begin yet")
    late = next_step(replace(RESTART, expires=990.0), Memory(), view(RUNNING), SLURM)
    assert isinstance(late, Finish)
    assert (late.result, late.untouched) == ("expired", True)


def test_where_nothing_can_be_held_the_old_one_goes_first() -> None:
    free = replace(view(RUNNING), holds=False)
    assert isinstance(next_step(RESTART, Memory(), free, LOCAL), Cancel)
    assert isinstance(next_step(RESTART, Memory(), replace(free, old=GONE), LOCAL), Submit)


def test_memory_survives_being_kept_as_text() -> None:
    known = Memory(tried_at=1.5, winner="7", winner_at=2.25, missing_epoch="boot", refusals=2, refusal="no")
    assert memory(known.words() | {"of a newer version": "x"}) == known
