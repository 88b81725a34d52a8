"""Large logs: the answer does not depend on blocks or processes."""

from __future__ import annotations

import io
import json
import random
import sys
from pathlib import Path

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay import job_replay
from midwatch.agents.replay.job_replay import replay
from midwatch.agents.replay.output import as_plain
from midwatch.agents.replay.reading.given_files import shown_progress
from midwatch.agents.replay.reading.line_order import cut
from midwatch.agents.replay.reading.log_files import LogFile, chunks
from midwatch.agents.rulesets.bundles import CompiledBundle, watched_rules
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.rules.prefilter.workloads import progress, storm
from midwatch.streams.records import Hits, Origin, Progress

POLICY = load_policy("verdict")
BOOK = Rulebook({POLICY.name: POLICY}, sign=lambda command: command, default_policy=POLICY.name)


@pytest.fixture(scope="module")
def watched() -> CompiledBundle:
    return watched_rules(("default",), scan=False)


def _answer(files: list[LogFile], watched: CompiledBundle, processes: int = 1) -> str:
    return json.dumps(as_plain(replay("j", files, watched, BOOK, WatchLimits(), processes=processes)))


def test_several_processes_give_the_same_answer_as_one(watched: CompiledBundle) -> None:
    files = [
        LogFile("rank_0.log", progress(1_500_000), 1.79e9),
        LogFile("rank_1.log", storm(1_500_000), 1.79e9),
        LogFile("rank_2.log", b"started\n", 1.79e9),
    ]
    one = _answer(files, watched)
    assert _answer(files, watched, processes=3) == one
    assert {hit["file"] for hit in json.loads(one)["hits"]} >= {"rank_1.log"}


def test_the_bytes_read_are_told_as_they_are_read(watched: CompiledBundle, tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    file.write_bytes(progress(1_000_000))
    read: list[int] = []
    replay("j", [LogFile("f", file, 1e9)], watched, BOOK, WatchLimits(), advance=read.append)
    assert sum(read) == file.stat().st_size
    assert len(read) > 3


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("size", "shown"), [(100 << 20, True), (1 << 20, False)])
def test_a_terminal_shows_how_far_a_large_log_is(
    monkeypatch: pytest.MonkeyPatch, size: int, *, shown: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal, pipe = _Terminal(), io.StringIO()
    for stderr in (terminal, pipe):
        monkeypatch.setattr(sys, "stderr", stderr)
        with shown_progress(size) as advance:
            advance(size // 2)
    assert ("reading" in terminal.getvalue()) is shown
    assert pipe.getvalue() == ""


def test_more_hits_than_a_result_lists_are_counted(
    watched: CompiledBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [LogFile("f", storm(600_000), 1e9)]
    whole = json.loads(_answer(files, watched))
    monkeypatch.setattr(job_replay, "MOST_HITS", 5)
    short = json.loads(_answer(files, watched))
    assert short["hits"] == whole["hits"][:5]
    assert short["hits_not_listed"] == len(whole["hits"]) - 5
    assert "hits_not_listed" not in whole
    assert short["verdict"] == whole["verdict"]


def test_a_line_without_end_costs_no_memory(tmp_path: Path) -> None:
    """The chunks hold at most a raw line's limit, and every byte is in one of them."""
    file = tmp_path / "train.log"
    file.write_bytes(b"a" * 3_000_000 + b"\nafter it\n" + b"b" * 300_000)
    found = list(chunks("j", LogFile("f", file, 1e9), 0))
    assert max(chunk.sections[0].end for chunk in found) == file.stat().st_size
    assert b"after it\n" in b"".join(chunk.text for chunk in found)
    assert max(len(chunk.text) for chunk in found) < 1 << 20


def test_a_record_is_cut_at_a_time_and_no_line_is_lost() -> None:
    chance = random.Random(5)
    for _ in range(100):
        times = [float(chance.randrange(6)) for _ in range(chance.randrange(1, 12))]
        column = Progress(
            path="f", generation="g", rule="r", phase="training",
            steps=tuple(range(len(times))), ends=tuple(range(len(times))),
            numbers=tuple(range(len(times))), times=tuple(times),
        )  # fmt: skip
        record = Hits(Origin("j", "n", 1, "i", "", "n"), "b", progress=(column,))
        until = chance.random() * 6
        before, rest = cut(record, until, inclusive=True)
        parts = [part.progress[0] for part in (before, rest) if part is not None]
        assert [step for part in parts for step in part.steps] == list(column.steps)
        assert before is None or max(before.progress[0].times) <= until
        assert rest is None or rest.progress[0].times[0] > until
