"""Lines held against an attempt while loops count on: earlier versions and this one read each other."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest

from midwatch.agents.detect.incident.state import Job, JobState
from midwatch.streams.records import Held, Hit, Hits, Incident, codec
from unit.agents.detect.incident.scene import Scene
from unit.upgrade.filled import filled


@dataclass(frozen=True)
class _EarlierHeld:
    """As versions before `loops` knew it."""

    hit: Hit
    step: int
    logged_ms: int = 0
    count: float | None = None
    rises: int = 0


@dataclass(frozen=True)
class _EarlierJobState:
    held: tuple[_EarlierHeld, ...] = ()
    version: int = 1


def _suspected() -> Scene:
    scene = Scene()
    scene.line("exception", transient=False)
    return scene


@pytest.mark.parametrize(
    ("count", "states"),
    [("6", ["suspected", "withdrawn"]), ("5", ["suspected"]), ("1:6", ["suspected"])],
)
def test_a_loop_that_an_earlier_version_counted_is_counted_on(count: str, states: list[str]) -> None:
    scene = _suspected()
    job = scene.watch.job
    blob = json.loads(codec.state_to_bytes(job.state))
    blob["held"][0] |= {"count": 5.0, "rises": 1}
    del blob["held"][0]["loops"]
    state = codec.state_from_bytes(json.dumps(blob).encode(), JobState)
    assert state.held[0].count == 5.0
    scene.watch = replace(scene.watch, job=Job(state, job.nodes))
    scene.now += 1
    scene.progress(-1, count=count)
    assert [record.state for record in scene.records if isinstance(record, Incident)] == states


def test_an_earlier_version_reads_what_is_held_now() -> None:
    scene = _suspected()
    scene.now += 1
    scene.progress(-1, count="4")
    state = scene.watch.job.state
    assert state.held[0].loops
    (held,) = codec.state_from_bytes(codec.state_to_bytes(state), _EarlierJobState).held
    assert held == _EarlierHeld(state.held[0].hit, state.held[0].step, state.held[0].logged_ms)


def test_a_held_line_keeps_all_that_either_version_wrote() -> None:
    held = filled(Held)
    assert codec.state_from_bytes(codec.state_to_bytes(held), Held) == held


def test_progress_of_an_earlier_match_worker_shows_steps() -> None:
    body = json.loads(codec.encode(filled(Hits)))
    for progress in body["progress"]:
        del progress["shows"]
    assert {progress.shows for progress in codec.decode(json.dumps(body).encode()).progress} == {"step"}
