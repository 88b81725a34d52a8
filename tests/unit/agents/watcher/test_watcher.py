"""What the watcher does at its first look, about what happened before its process began."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Any, cast

from midwatch.agents.schedulers.base import Sweep
from midwatch.agents.watcher.census import JobStart
from midwatch.agents.watcher.drain import LastWords
from midwatch.agents.watcher.watcher import Watcher
from midwatch.streams.records import Spec

SPEC = object()


class Words:
    """Notes whose drain is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[JobStart, object]] = []
        self.followed: set[str] = set()

    def ended(self, start: JobStart, spec: Spec | None, now: float) -> None:
        assert now > 0
        self.asked.append((start, spec))

    def again(self, followed: Set[str], now: float) -> None:
        assert now > 0
        self.followed = set(followed)


class Census:
    """Jobs as an earlier executor left them."""

    def __init__(self, *starts: JobStart) -> None:
        self._starts = starts

    def starts(self, kind: str) -> tuple[JobStart, ...]:
        assert kind == "local"
        return self._starts

    def spec_of(self, job: str) -> object:
        assert job
        return SPEC


class Quiet:
    """A host without a job that runs."""

    name = kind = "local"
    holds = False

    def sweep(self) -> Sweep:
        return Sweep(())


def watcher(tmp_path: Path, words: Words, *starts: JobStart) -> Watcher:
    return Watcher(
        (),
        cast(Any, Census(*starts)),
        cast(Any, None),
        state_directory=tmp_path,
        poll_s=1.0,
        jobs_by_key=dict,
        last_words=cast(LastWords, words),
    )


def test_what_ended_under_an_earlier_executor_is_drained_by_this_one_once(tmp_path: Path) -> None:
    first = JobStart("local:ann/a", "local:1:1", "FAILED", ended=True)
    last = JobStart("local:ann/a", "local:2:2", "FAILED", ended=True, effect_key="k")
    words = Words()
    watching = watcher(tmp_path, words, first, last)
    for _ in range(2):
        watching.look(cast(Any, Quiet()))
    assert words.asked == [(last, SPEC)], "the job's checkpoint speaks of its last start"


def test_the_drain_of_a_start_that_another_one_follows_is_that_ones_shippers(tmp_path: Path) -> None:
    ended = JobStart("local:ann/a", "local:1:1", "FAILED", ended=True)
    after, words = JobStart("local:ann/a", "local:2:2", "RUNNING"), Words()
    watcher(tmp_path, words, ended, after).look(cast(Any, Quiet()))
    assert words.asked == []
    assert words.followed == {"local:1:1"}


def test_a_start_that_events_do_not_know_yet_is_followed_by_none(tmp_path: Path) -> None:
    # A third start died before events told of it: its drain must go on, though an older one is the latest.
    first = JobStart("local:ann/a", "local:1:1", "FAILED", ended=True)
    second, words = JobStart("local:ann/a", "local:2:2", "FAILED", ended=True), Words()
    watcher(tmp_path, words, first, second).look(cast(Any, Quiet()))
    assert words.followed == {"local:1:1"}, "neither the latest that is known nor one that is not"
