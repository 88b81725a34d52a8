"""A hang is found; a blind or slow watch never makes a healthy job look hung."""

from __future__ import annotations

import pytest

from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Finding
from unit.agents.detect.incident.scene import START_S, Scene


@pytest.mark.capability("S002-04", "N-6", "S001-57")
def test_a_hang_is_found_by_counted_silence_and_restarted_once() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.beats(seconds=120)
    assert [i.verdict.mode for i in scene.settled()] == ["stall"]
    assert [i.verdict.error_type for i in scene.settled()] == ["hang"]
    assert len(scene.commands) == 1
    scene.accepted(scene.commands[0])
    scene.beats(seconds=300)
    assert len(scene.commands) == 1


def test_a_hang_is_shown_by_the_last_step_that_was_printed() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.beats(seconds=120)
    (incident,) = scene.settled()
    assert (incident.verdict.root_line, incident.verdict.root_file) == ("step 20", "/logs/n0.log")


@pytest.mark.capability("S002-04")
def test_five_minutes_without_a_step_are_a_stall_and_less_are_none() -> None:
    scene = Scene(limits=WatchLimits(training=300.0))
    scene.spec()
    scene.train(range(1, 21))
    scene.beats(seconds=295)
    assert scene.settled() == []
    scene.beats(seconds=15)
    assert [i.verdict.mode for i in scene.settled()] == ["stall"]


@pytest.mark.capability("S004-31")
def test_a_start_that_prints_nothing_at_all_is_a_hang_for_a_person() -> None:
    scene = Scene()
    scene.spec()
    scene.beats(seconds=290)
    assert scene.settled() == []
    scene.beats(seconds=30)
    (incident,) = scene.settled()
    assert (incident.verdict.mode, incident.verdict.error_type) == ("stall", "hang")
    assert incident.verdict.phase == "startup"
    assert scene.actions() == ["hold"]


@pytest.mark.capability("X-14", "N-6")
def test_a_stopped_shipper_leaves_us_blind_and_nothing_is_done() -> None:
    scene = Scene(nodes=("n0", "n1"))
    scene.spec()
    scene.train(range(1, 21))
    scene.beats("n1", seconds=300)
    assert scene.findings("blind") == [True]
    assert scene.commands == []
    assert scene.actions()[-1] == "hold"
    assert "blind" in scene.decisions[-1].reason


@pytest.mark.capability("X-14", "N-6")
def test_the_silence_of_the_only_node_that_is_heard_of_three_proves_nothing() -> None:
    scene = Scene(nodes=("n0", "n1", "n2"))
    scene.spec()
    scene.train(range(1, 21))
    scene.beats("n0", seconds=300)
    assert scene.findings("blind") == [True]
    assert scene.settled() == []
    assert scene.commands == []
    assert "2 of 3 nodes give no sign of life (n1, n2)" in scene.decisions[-1].reason


def test_sight_that_returns_counts_silence_anew() -> None:
    scene = Scene(nodes=("n0", "n1"))
    scene.spec()
    scene.train(range(1, 21))
    scene.beats("n1", seconds=300)
    scene.beats(seconds=40)
    assert scene.findings("blind") == [True, False]
    assert scene.commands == []
    scene.beats(seconds=60)
    assert len(scene.commands) == 1


def test_beats_that_arrive_in_a_burst_after_a_pause_of_match_prove_nothing() -> None:
    scene = Scene(nodes=("n0", "n1", "n2"))
    scene.spec()
    scene.train(range(1, 21))
    made = scene.now
    scene.now += 90  # match stands still; the job trains on, and the shippers send on
    for passed in range(5, 95, 5):
        for node in ("n1", "n2", "n0"):  # the partition of the node that prints comes last
            if node == "n0":
                scene.progress(20 + passed, node="n0")
            scene.beat(node, made=made + passed)
    assert scene.commands == []
    assert scene.settled() == []


def test_the_burst_of_other_nodes_alone_cannot_make_a_silence() -> None:
    scene = Scene(nodes=("n0", "n1", "n2"))
    scene.spec()
    scene.train(range(1, 21))
    made = scene.now
    scene.now += 90
    for passed in range(5, 95, 5):
        for node in ("n1", "n2"):
            scene.beat(node, made=made + passed)
    assert scene.findings("blind") == [True]
    assert scene.settled() == []
    for passed in range(5, 95, 5):
        scene.progress(20 + passed, node="n0")
        scene.beat("n0", made=made + passed)
    assert scene.settled() == []
    assert scene.commands == []


@pytest.mark.parametrize(("lost", "restarts"), [("n2", 1), ("n0", 0)])
def test_a_lost_node_supports_a_hang_unless_it_is_the_one_that_prints(lost: str, restarts: int) -> None:
    scene = Scene(nodes=("n0", "n1", "n2"))
    scene.spec()
    scene.train(range(1, 21))
    left = [node for node in scene.nodes if node != lost]
    scene.beats(*left, seconds=200)
    assert len(scene.commands) == restarts
    assert scene.findings(f"node_silent:{lost}") == [True]
    assert scene.findings("blind") == ([] if restarts else [True])


@pytest.mark.capability("S001-78")
def test_a_long_evaluation_has_a_limit_of_its_own() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.progress(20, phase="evaluation")
    scene.beats(seconds=500)
    scene.train(range(21, 30))
    assert scene.settled() == []
    assert scene.commands == []


def test_a_shipper_that_lags_behind_its_files_counts_no_silence() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    for _ in range(60):
        scene.now += 5
        scene.beat("n0", at_end=False)
    assert scene.settled() == []


def test_a_repeated_beat_counts_once() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    for _ in range(40):
        scene.now += 1
        scene.sequences["n0"] -= 1
        scene.beat("n0")
    assert scene.watch.job.nodes["n0"].pulse.silence < 10


def test_a_hung_job_that_goes_on_before_anything_was_done_is_no_incident() -> None:
    scene = Scene()
    scene.spec(armed=False)
    scene.train(range(1, 21))
    scene.beats(seconds=90)
    assert scene.decisions[-1].action == "restart"
    assert scene.commands == []
    scene.train(range(21, 40))
    scene.ended(exit_code=0)
    scene.last_words()
    assert scene.watch.job.state.incident is not None
    assert scene.settled()[-1].verdict.mode != "stall"


def test_a_job_that_is_done_may_tidy_up_in_silence() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.line("done", role="success")
    scene.beats(seconds=300)
    assert scene.settled() == []
    scene.ended(exit_code=0)
    scene.last_words()
    assert scene.actions() == ["none"]


@pytest.mark.capability("X-14")
@pytest.mark.parametrize("nodes", [("n0",), ("n0", "n1")])
def test_a_shipper_that_ended_with_its_job_is_no_blind_spot(nodes: tuple[str, ...]) -> None:
    """The scheduler tells the end at its next sweep, when the heartbeats have stopped for three intervals."""
    scene = Scene(nodes=nodes)
    scene.spec()
    scene.train(range(1, 21))
    scene.now += 22
    scene.ended(exit_code=9)
    assert scene.findings("blind") == []
    assert [decision.reason for decision in scene.decisions if "blind" in decision.reason] == []


def test_nodes_that_ended_and_one_that_was_never_heard_of_wait_for_the_scheduler_too() -> None:
    scene = Scene(nodes=("n0", "n1"))
    scene.spec()
    scene.now += 3
    scene.beat("n0")
    scene.now += 3
    scene.last_words("n0")
    scene.now += 20
    scene.ended(exit_code=0)
    assert scene.findings("blind") == []


@pytest.mark.capability("X-14")
def test_a_job_of_which_no_node_and_no_scheduler_speaks_is_a_blind_spot_until_it_ends() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.now += 60
    scene.spec()
    assert scene.findings("blind") == [True]
    scene.now += 5
    scene.ended()
    assert scene.findings("blind") == [True, False]


def test_findings_and_incidents_keep_the_last_step_and_heartbeat() -> None:
    """The lists of jobs read few events, so these are all that they have of a job that is over."""
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    last_ms = int((START_S + scene.now) * 1000)
    scene.now += 60
    scene.spec()
    (blind,) = (r for r in scene.records if isinstance(r, Finding) and r.kind == "blind")
    assert (blind.step, blind.heard_ms) == (20, last_ms)
    scene.ended()
    scene.now += 200
    scene.spec()
    assert [(i.verdict.step, i.heard_ms) for i in scene.settled()] == [(20, last_ms)]
