"""Nodes' clocks may be years off, or jump: their lines still stand in the order of their writing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.agents.detect.diagnosis.root_line import root_of
from midwatch.agents.detect.incident.fold import fold_event
from midwatch.agents.detect.incident.state import Job, JobState
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Heartbeat, Hit, Hits, Line, Origin

NOW_S = 1_795_000_000.0
YEAR_S = 366 * 86_400.0
ERRORS = st.integers(-50, 50).map(lambda years: years * YEAR_S)  # of a clock; 0: it is right
JOB = "local:ada/llm"


def _origin(node: str) -> Origin:
    return Origin(JOB, node, 2, "local:1:1", "boot", f"{node}/1")


def _line(node: str, wall: float, at: float, number: int) -> Hits:
    line = Line("CUDA error", f"/logs/{node}.log", number, number * 10, wall, node)
    hit = Hit("cuda", "cause", "torch", "cuda", "error", None, line, number * 10 + 9, node)
    return Hits(_origin(node), "bundle", (hit,), ends={node: number * 10 + 9}, logged_ms=int(at * 1000) + 200)


@given(
    first=ERRORS,
    then=ERRORS,
    jump_at=st.integers(0, 12),
    writers=st.lists(st.sampled_from(("right", "wrong")), min_size=2, max_size=12),
    beats=st.sets(st.integers(0, 12)),
)
@settings(max_examples=cases(300))
def test_lines_of_a_clock_years_off_stand_where_they_were_written(
    first: float, then: float, jump_at: int, writers: list[str], beats: set[int]
) -> None:
    """One line every ten seconds, appended within a second. Beats may come, or not yet; the wrong clock is
    off from the start, and may be set right, or further wrong, in the midst of it."""
    job = Job(JobState())
    for number, node in enumerate(writers):
        at = NOW_S + 10 * number
        wrong = first if number < jump_at else then
        wall = max(at + (wrong if node == "wrong" else 0.0), 0.0)
        job = fold_event(job, JOB, _line(node, wall, at, number + 1), int(at * 1000) + 400, WatchLimits()).job
        if number in beats:
            beat = Heartbeat(
                _origin("wrong"), number, max(at + 1 + wrong, 0.0), float(number), 5.0, True, 0,
                logged_ms=int(at * 1000) + 1100,
            )  # fmt: skip
            job = fold_event(job, JOB, beat, int(at * 1000) + 1200, WatchLimits()).job
    held = sorted(job.state.held, key=lambda h: h.hit.line.time)
    for one, later in pairwise(held):
        assert one.hit.line.number < later.hit.line.number


def test_a_first_line_before_any_beat_counts_from_its_append_time_if_its_clock_is_years_off() -> None:
    for wall in (0.0, NOW_S - 5 * YEAR_S, NOW_S + 70 * YEAR_S):
        job = fold_event(
            Job(JobState()), JOB, _line("wrong", wall, NOW_S, 1), int(NOW_S * 1000), WatchLimits()
        ).job
        assert job.state.held[0].hit.line.time == NOW_S + 0.2


def test_a_line_that_waited_for_the_broker_over_a_weekend_keeps_its_own_time() -> None:
    written = NOW_S - 2 * 86_400
    job = fold_event(
        Job(JobState()), JOB, _line("n0", written, NOW_S, 1), int(NOW_S * 1000), WatchLimits()
    ).job
    assert job.state.held[0].hit.line.time == written


def _root(job: Job) -> Hit | None:
    return root_of([held.hit for held in job.state.held])


@pytest.mark.parametrize("late_s", [0.0, 0.4, 3.0])
def test_two_lines_of_a_node_do_not_change_places_because_a_beat_came_between_them(late_s: float) -> None:
    """The second beat was on its way for less long, so it knows the node's clock better."""
    job = Job(JobState())

    def say(event: Hits | Heartbeat, at: float) -> None:
        nonlocal job
        job = fold_event(job, JOB, event, int(at * 1000), WatchLimits()).job

    def beat(number: int, at: float, logged: float) -> Heartbeat:
        return Heartbeat(_origin("n0"), number, at, at, 5.0, True, 0, logged_ms=int(logged * 1000))

    say(beat(1, NOW_S, NOW_S + 0.5 + late_s), NOW_S + 0.6 + late_s)
    say(_line("n0", NOW_S + 4.0, NOW_S + 4.0, 1), NOW_S + 4.4)
    say(beat(2, NOW_S + 5.0, NOW_S + 5.1), NOW_S + 5.2)
    later = _line("n0", NOW_S + 4.001, NOW_S + 5.2, 2)
    other_rank = replace(later.hits[0], rule="oom", line=replace(later.hits[0].line, path="/logs/rank1.log"))
    say(replace(later, hits=(other_rank,), ends={"rank1": 29}), NOW_S + 5.5)
    first, second = (held.hit.line.time for held in job.state.held)
    assert second - first == pytest.approx(0.001, abs=1e-5)
    root = _root(job)
    assert root is not None
    assert root.line.number == 1
