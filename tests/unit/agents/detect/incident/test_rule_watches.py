"""A line may end the watch of a rule, and a rule may count only so often: on the stream and in a replay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.detect.incident.fold import fold_event
from midwatch.agents.detect.incident.snapshots import snapshot_of
from midwatch.agents.detect.incident.state import Job, JobState
from midwatch.agents.detect.incident.turn import Turn
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.match.record_size import encoded
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.job_replay import replay
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.rulesets.bundles import CompiledBundle, watched_rules
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.lines.normalise import normalise
from midwatch.streams.records import Chunk, Generation, Hits, Rate, Section, codec
from unit.agents.detect.incident.scene import JOB, START_S, Scene

RULES = r"""
version: 1
rules:
  - name: warming_up
    pattern: 'link \w+ is down'
    error_type: communication
    transient: true
    stop_pattern: '^training begins'
  - name: counted_in
    role: progress
    pattern: 'warmup (?P<step>\d+)'
    stop_pattern: '^training begins'
  - name: noisy
    pattern: 'retry of \w+ failed'
    error_type: storage
    transient: true
    rate_limit: {hits: 2, per: 60s}
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> CompiledBundle:
    file = tmp_path_factory.mktemp("rules") / "own.yaml"
    file.write_text(RULES)
    return watched_rules((str(file),))


class Followed:
    """A job whose lines go through match into the fold, one poll after the other."""

    def __init__(self, watched: CompiledBundle) -> None:
        self.watched = watched
        self.scene = Scene(nodes=("n0", "n1"))
        self.scene.spec()
        self.ends = {"n0": 0, "n1": 0}
        self.numbers = {"n0": 1, "n1": 1}

    def prints(self, text: str, node: str = "n0", *, at: float = 1.0, again: bool = False) -> None:
        self.scene.now += at
        raw = text.encode()
        lines = normalise(raw)
        start = self.ends[node] - len(raw) if again else self.ends[node]
        number = self.numbers[node] - (lines.lines if again else 0)
        section = Section(
            path=f"/l/{node}.log",
            generation=Generation(1, 1, node),
            size=len(lines.text),
            lines=lines.lines,
            anchors=lines.placed(start, number),
            end=start + len(raw),
            read_before=START_S + self.scene.now,
            read_at=START_S + self.scene.now,
        )
        chunk = Chunk(self.scene.origin(node), (section,), lines.text)
        record = match(chunk, self.watched.rules, self.watched.hash, 0)
        if record is not None:
            self.scene.say(codec.decode(encoded(record)))
        self.ends[node], self.numbers[node] = start + len(raw), number + lines.lines

    @property
    def state(self) -> JobState:
        return self.scene.watch.job.state

    def held(self) -> list[str]:
        return [f"{held.hit.line.node}:{held.hit.line.number}" for held in self.state.held]


@pytest.mark.capability("X-20")
@pytest.mark.capability("X-20")
def test_a_line_ends_the_watch_of_its_rule_and_of_no_other(watched: CompiledBundle) -> None:
    job = Followed(watched)
    job.prints("link a is down\ntraining begins\nlink b is down\nretry of c failed\n")
    job.prints("link d is down\n")
    assert job.held() == ["n0:1", "n0:4"]
    assert job.state.stopped == ("warming_up", "counted_in")
    assert job.state.counts == ()


def test_the_line_that_ends_the_watch_speaks_for_the_whole_job(watched: CompiledBundle) -> None:
    job = Followed(watched)
    job.prints("training begins\n", "n0")
    job.prints("link a is down\n", "n1")
    assert job.held() == []


def test_a_hit_on_another_node_before_the_line_counts_though_both_arrive_together(
    watched: CompiledBundle,
) -> None:
    """In one record lines of several files are taken by their time."""
    job = Followed(watched)
    job.prints("link a is down\n", "n1")
    job.prints("training begins\n", "n0")
    assert job.held() == ["n1:1"]


def test_resent_lines_end_nothing_twice_and_bring_nothing_back(watched: CompiledBundle) -> None:
    job = Followed(watched)
    job.prints("link a is down\ntraining begins\n")
    before = job.state
    job.prints("link a is down\ntraining begins\n", again=True)
    assert replace(job.state, due_ms=before.due_ms) == before


def test_steps_behind_the_line_are_no_progress(watched: CompiledBundle) -> None:
    job = Followed(watched)
    job.prints("warmup 3\ntraining begins\nwarmup 9\n")
    job.prints("warmup 10\n")
    assert job.state.step == 3


def test_the_next_attempt_is_watched_by_every_rule_again(watched: CompiledBundle) -> None:
    job = Followed(watched)
    job.prints("training begins\nretry of a failed\nretry of b failed\nretry of c failed\n")
    job.scene.ended()
    job.scene.last_words()
    job.scene.incarnation = "local:200:1"
    job.scene.sequences.clear()
    job.prints("link a is down\nretry of a failed\n")
    assert (job.state.attempt, job.held()) == (2, ["n0:5", "n0:6"])


def test_of_a_limited_rule_so_many_hits_count_in_a_window_and_the_others_are_counted(
    watched: CompiledBundle,
) -> None:
    job = Followed(watched)
    job.prints("retry of a failed\n")
    job.prints("retry of a failed\n", "n1", at=20)
    job.prints("retry of a failed\nretry of b failed\n", at=20)
    assert job.held() == ["n0:1", "n1:1"]
    assert [(c.rule, c.path, c.count, c.first_number, c.last_number) for c in job.state.counts] == [
        ("noisy", "/l/n0.log", 2, 2, 3)
    ]
    job.prints("retry of c failed\n", at=30)  # 70 s after the first
    assert job.held() == ["n0:1", "n1:1", "n0:4"]


def test_windows_go_by_the_time_of_the_lines_and_never_back() -> None:
    scene = Scene()
    scene.spec()
    scene.now += 200
    hits = []
    for at in (100.0, 150.0, 159.9, 160.0, 120.0, 165.0, 225.0):
        hit = replace(scene.line("x", at=at), limit=None)
        hits.append(hit)
    scene = Scene()
    scene.spec()
    scene.now += 300
    for number, hit in enumerate(hits, 1):
        limited = replace(hit, limit=Rate(2, 60.0), end=number, generation=f"g{number}", rule="r")
        line = replace(hit.line, path=f"/l/{number}")
        scene.say(Hits(scene.origin("n0"), "b", (replace(limited, line=line),), ends={f"g{number}": number}))
    held = [held.hit.line.path for held in scene.watch.job.state.held]
    assert held == ["/l/1", "/l/2", "/l/4", "/l/5", "/l/7"]


def test_a_carry_takes_both_along(watched: CompiledBundle) -> None:
    job = Followed(watched)
    job.prints("training begins\nretry of a failed\nretry of b failed\n")
    turn = Turn(job.scene.watch.job, WatchLimits(), DETECTORS, int((START_S + job.scene.now) * 1000))
    snapshot = codec.decode(codec.encode(snapshot_of(turn)))
    folded = fold_event(Job(JobState()), JOB, snapshot, turn.now_ms, WatchLimits(), cut=True)
    assert folded.job.state.stopped == job.state.stopped
    assert folded.job.state.rates == job.state.rates
    assert folded.job.state.rates["noisy"].hits == 2


def replayed(watched: CompiledBundle, text: str) -> Replayed:
    book = Rulebook({"verdict": load_policy("verdict")}, lambda command: command)
    return replay("replay:file/x", [LogFile("x.log", text.encode(), 1e9)], watched, book, WatchLimits())


@pytest.mark.capability("X-20")
def test_a_replay_of_the_file_says_what_the_stream_said(watched: CompiledBundle) -> None:
    text = "link a is down\ntraining begins\nlink b is down\n"
    shown = replayed(watched, text)
    assert [hit.line.number for hit in shown.evidence] == [1]
    assert (shown.verdict.rule, shown.verdict.root_line_number) == ("warming_up", 1)
    quiet = replayed(watched, "training begins\nlink b is down\n")
    assert quiet.verdict.state == "unknown"
    job = Followed(watched)
    job.prints(text)
    assert job.held() == ["n0:1"]


def test_a_replay_keeps_to_the_rate_of_a_rule(watched: CompiledBundle) -> None:
    def lines(*seconds: int) -> str:
        return "".join(f"2026-03-02 11:{n // 60:02}:{n % 60:02} retry of a failed\n" for n in seconds)

    assert [hit.line.number for hit in replayed(watched, lines(0, 10, 59)).evidence] == [1, 2]
    assert [hit.line.number for hit in replayed(watched, lines(0, 10, 60)).evidence] == [1, 2, 3]
