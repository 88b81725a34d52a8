"""What the watcher does at its first look, about what happened before its process began."""

from __future__ import annotations

import threading
from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from checkpoint_shapes import cut, lightning_file
from midwatch.agents.schedulers.base import ClusterUnreachable, SchedulerJob, StartState, Sweep
from midwatch.agents.watcher import saved
from midwatch.agents.watcher.census import JobStart
from midwatch.agents.watcher.drain import LastWords
from midwatch.agents.watcher.saved import RunningLooks, saved_by
from midwatch.agents.watcher.watcher import Watcher
from midwatch.streams.records import CheckpointChoice, SchedulerFact, Spec
from processes import wait_for

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


def test_the_newest_complete_checkpoint_of_a_job_is_seen_at_its_end(tmp_path: Path) -> None:
    spec = Spec("local:ann/a", "local", ("t",), "/", {}, "ann", (), str(tmp_path), "verdict", True)
    assert saved_by(spec) is None
    assert saved_by(replace(spec, checkpoint_directory="")) is None
    file = lightning_file(tmp_path / "epoch=1-step=40.ckpt", 40)
    cut(lightning_file(tmp_path / "epoch=2-step=60.ckpt", 60))
    assert saved_by(spec) == CheckpointChoice(40, str(file), "step", int(file.stat().st_mtime * 1000))


def test_a_directory_that_does_not_answer_holds_up_no_fact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    def never(directory: Path) -> tuple[None, tuple[str, ...]]:
        answers.wait()
        return None, (str(directory),)

    monkeypatch.setattr(saved, "newest", never)
    spec = Spec("local:ann/a", "local", ("t",), "/", {}, "ann", (), str(tmp_path), "verdict", True)
    assert saved_by(spec, patience_s=0.05) is None
    answers.set()


def test_each_new_complete_checkpoint_of_a_running_start_is_told_once(tmp_path: Path) -> None:
    looks, running = RunningLooks(every_s=10.0), {"local:1:1": str(tmp_path)}

    def told(now: float) -> list[int]:
        """What the looks tell at `now`, once the thread has answered all that was asked."""
        before, found = looks.looked, [looks.look(running, now)]
        if now % 10 == 0:
            wait_for(lambda: looked_again(found, now, before), "the directory was looked at")
        return [each["local:1:1"].number for each in found if each]

    def looked_again(found: list[dict[str, CheckpointChoice]], now: float, before: int) -> bool:
        if looks.looked == before:
            found.append(looks.look(running, now))
        return looks.looked > before

    assert told(0.0) == []
    lightning_file(tmp_path / "epoch=1-step=40.ckpt", 40)
    assert told(5.0) == [], "not due"
    assert told(10.0) == [40]
    cut(lightning_file(tmp_path / "epoch=2-step=60.ckpt", 60))
    assert told(20.0) == [], "torn"
    lightning_file(tmp_path / "epoch=2-step=60.ckpt", 60)
    assert told(30.0) == [60]
    assert looks.look({}, 40.0) == {}


class Running(Quiet):
    """A host on which the job runs."""

    def sweep(self) -> Sweep:
        return Sweep((SchedulerJob("1", "local:1:1", StartState("running", "RUNNING")),))


def test_the_watcher_reports_the_checkpoint_of_a_start_that_runs(tmp_path: Path) -> None:
    (folder := tmp_path / "ckpt").mkdir()
    lightning_file(folder / "epoch=1-step=40.ckpt", 40)
    spec = Spec("local:ann/a", "local", ("t",), "/", {}, "ann", (), str(folder), "verdict", True)
    told: list[SchedulerFact] = []

    class Known(Census):
        def spec_of(self, job: str) -> object:
            return spec if job == spec.job else None

    class Reporter:
        def event(self, record: SchedulerFact) -> None:
            told.append(record)

    watching = Watcher(
        (cast(Any, Running()),),
        cast(Any, Known(JobStart("local:ann/a", "local:1:1", "RUNNING", effect_key="k"))),
        cast(Any, Reporter()),
        state_directory=tmp_path,
        poll_s=1.0,
        jobs_by_key=dict,
    )

    def saved() -> bool:
        watching.look(cast(Any, Running()))
        return bool(told)

    wait_for(saved, "the checkpoint is reported")
    (fact,) = told
    assert (fact.incarnation, fact.new, fact.ended) == ("local:1:1", "RUNNING", False)
    assert fact.effect_key == "k", "whoever meets the start by this fact knows which command started it"
    assert fact.saved is not None
    assert fact.saved.number == 40


class Going(Quiet):
    """A scheduler that answers one sweep and then goes. Each question costs its whole patience."""

    kind = "slurm"
    holds = True

    def __init__(self) -> None:
        self.sweeps = 0
        self.asked: list[str] = []
        self.back = False

    def sweep(self) -> Sweep:
        self.sweeps += 1
        if self.sweeps > 1 and not self.back:
            raise ClusterUnreachable("squeue gave no usable answer: it has gone")
        return Sweep(())

    def state(self, incarnation: str) -> StartState:
        self.asked.append(incarnation)
        return StartState("unknown", reason="squeue gave no usable answer: it has gone")


def test_a_scheduler_that_goes_amid_a_look_makes_the_watcher_blind_after_one_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    starts = [JobStart(f"slurm:ann/{n}", f"slurm:{n}:0", "RUNNING") for n in range(200)]
    cluster = Going()

    class Known(Census):
        def starts(self, kind: str) -> tuple[JobStart, ...]:
            assert kind == "slurm"
            return self._starts

    watching = Watcher(
        (cast(Any, cluster),),
        cast(Any, Known(*starts)),
        cast(Any, None),
        state_directory=tmp_path,
        poll_s=1.0,
        jobs_by_key=dict,
    )
    watching.look(cast(Any, cluster))
    assert len(cluster.asked) == 1
    assert watching.blind == {"local": "squeue gave no usable answer: it has gone"}
    assert "it has gone" in capsys.readouterr().err

    cluster.back = True
    watching.look(cast(Any, cluster))
    assert len(cluster.asked) == 1 + len(starts), "a question that fails beside a good sweep stops no other"
    assert not watching.blind


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
