"""Foreign detectors beside ours: what they remember, and that a broken one harms nobody but itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from midwatch.agents.detect.incident.detecting import STATE_LIMIT, Watch, show
from midwatch.agents.detect.incident.fold import fold_event
from midwatch.agents.detect.incident.snapshots import snapshot_of
from midwatch.agents.detect.incident.state import Job, JobState
from midwatch.agents.detect.incident.turn import Turn
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.base import Cleared, Detectors, Opened, Sighting, Sign, Stalled, StepSeen
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Finding, codec

JOB = "local:ada/toy"


@dataclass(frozen=True)
class Count:
    """Sightings so far."""

    seen: int = 0
    note: str = ""


@dataclass(frozen=True)
class Counter:
    """Opens at the second sighting and clears at the third; `answer` stands in its place."""

    name: str = "counter"
    version: str = "1"
    answer: Callable[[Count], Any] | None = None

    def start(self) -> Count:
        return Count()

    def observe(self, state: Count, _seen: Sighting) -> tuple[Count, tuple[Sign, ...]]:
        state = Count(state.seen + 1)
        if self.answer is not None:
            found: tuple[Count, tuple[Sign, ...]] = self.answer(state)
            return found
        signs: dict[int, tuple[Sign, ...]] = {2: (Opened("twice", about="x"),), 3: (Cleared("thrice", "x"),)}
        return state, signs.get(state.seen, ())


def _step(number: int) -> StepSeen:
    return StepSeen(number, "n0", "train.log", number, number, "training", loss="2.0")


def _seen(job: Job, number: int, *counters: Counter) -> tuple[Job, list[Finding]]:
    """One step of a job that is watched by ours and these."""
    detectors: Detectors = {**DETECTORS, **{each.name: each for each in counters}}
    turn = Turn(job, WatchLimits(), detectors, number)
    show(turn, _step(number))
    return turn.result(), [record for record in turn.out if isinstance(record, Finding)]


def _job() -> Job:
    return Job(JobState(job=JOB, attempt=1, incarnation="local:1:1", incarnations={"local:1:1": 1}))


def _kept(job: Job) -> Job:
    """The job as Redis gives it back."""
    return replace(job, state=codec.state_from_bytes(codec.state_to_bytes(job.state), JobState))


def test_its_state_is_kept_from_record_to_record_and_its_findings_open_and_clear() -> None:
    job, told = _job(), list[tuple[str, bool]]()
    for number in range(1, 5):
        job, found = _seen(_kept(job), number, Counter())
        told += [(finding.kind, finding.open) for finding in found]
    assert told == [("counter:x", True), ("counter:x", False)]


def test_several_sightings_of_one_record_come_to_the_same_as_one_by_one() -> None:
    apart, _ = _seen(_seen(_job(), 1, Counter())[0], 2, Counter())
    turn = Turn(_job(), WatchLimits(), {**DETECTORS, "counter": Counter()}, 2)
    watch = Watch(turn)
    watch.show(_step(1))
    watch.show(_step(2))
    watch.keep()
    assert turn.state == apart.state


def test_another_version_begins_anew() -> None:
    job, _ = _seen(_job(), 1, Counter())
    job, found = _seen(job, 2, Counter(version="2"))
    assert found == []
    assert job.state.detectors["counter"].version == "2"
    assert _seen(job, 3, Counter(version="2"))[1][0].open


def test_a_snapshot_carries_what_it_remembers() -> None:
    job, _ = _seen(_job(), 1, Counter())
    turn = Turn(job, WatchLimits(), DETECTORS, 2)
    snapshot = snapshot_of(turn)
    begun = fold_event(Job(JobState()), JOB, snapshot, 2, WatchLimits(), cut=True).job
    assert begun.state.detectors == job.state.detectors
    assert _seen(begun, 3, Counter())[1][0].open


def _raise(_state: Count) -> Any:
    raise ValueError("no two machines word it alike")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (_raise, "ValueError"),
        (lambda state: (state, (Stalled(1.0),)), "Stalled is no sign"),
        (lambda state: (state, (Opened(1),)), "no record can hold"),  # type: ignore[arg-type]  # the mistake
        (lambda _: (Count(note="x" * STATE_LIMIT), ()), "more than 16384 bytes"),
        (lambda _: (Count(seen=1.5), ()), "ValidationError"),  # type: ignore[arg-type]  # the mistake
        (lambda _: None, "TypeError"),
    ],
    ids=["raises", "stall", "no-text", "too-large", "not-kept", "no-answer"],
)
def test_a_broken_one_is_told_of_once_and_not_asked_again(answer: Callable[[Count], Any], why: str) -> None:
    asked = list[int]()

    def counted(state: Count) -> Any:
        asked.append(1)
        return answer(state)

    broken, whole = Counter(answer=counted), Counter(name="other")
    job, found = _seen(_job(), 1, broken, whole)
    assert [finding.kind for finding in found] == ["detector_failed:counter"]
    assert why in found[0].detail
    assert "no two machines" not in found[0].detail, "a replay must find the same words"
    job, found = _seen(_kept(job), 2, broken, whole)
    assert [finding.kind for finding in found] == ["other:x"]
    assert len(asked) == 1
    job, found = _seen(job, 3, Counter(version="2"), whole)
    assert ("detector_failed:counter", False) in [(finding.kind, finding.open) for finding in found]


def test_a_broken_one_is_not_asked_again_in_the_same_record() -> None:
    asked = list[int]()

    def answer(state: Count) -> Any:
        asked.append(state.seen)
        raise ValueError

    watch = Watch(Turn(_job(), WatchLimits(), {"counter": Counter(answer=answer)}, 2))
    watch.show(_step(1))
    watch.show(_step(2))
    assert asked == [1]
