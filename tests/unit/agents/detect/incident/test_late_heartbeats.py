"""A heartbeat that came to Kafka late vouches for the time of its reading, not for that of its arrival."""

from __future__ import annotations

from midwatch.streams.records import Verdict
from unit.agents.detect.incident.scene import START_S, Scene

NODES = ("n0", "n1")


def _crash(scene: Scene, *, made: float) -> None:
    """It ends at 41 s. At 47 s the broker takes a heartbeat of n1 whose shipper began to read at `made`."""
    scene.spec()
    scene.train(range(1, 41))
    scene.now = 41.0
    scene.ended()
    scene.now = 47.0
    scene.beat("n0")
    scene.beat("n1", made=made, logged_ms=int((START_S + 47.0) * 1000))


def _first_settled(scene: Scene) -> Verdict:
    return scene.settled()[0].verdict


def test_a_heartbeat_that_was_read_before_the_end_and_appended_behind_it_vouches_for_no_last_word() -> None:
    scene = Scene(nodes=NODES)
    _crash(scene, made=40.5)  # before its last line was written
    assert scene.settled() == [], "the last lines of n1 are waited for"

    scene.now = 47.5
    scene.line("nccl_timeout", transient=True, node="n1", at=40.9)
    scene.beat("n1")
    verdict = _first_settled(scene)
    assert (verdict.error_type, verdict.complete) == ("nccl_timeout", True)
    assert scene.actions() == ["restart"]


def test_the_clock_of_the_node_may_be_off_by_any_time() -> None:
    scene = Scene(nodes=NODES)
    year = 366 * 86_400.0
    scene.spec()
    for now in range(1, 41):
        scene.now = float(now)
        scene.progress(now)
        if now % 5 == 0:
            scene.beat("n0")
            scene.beat("n1", made=now - year, logged_ms=int((START_S + now) * 1000))
    scene.now = 41.0
    scene.ended()
    scene.now = 47.0
    scene.beat("n0")
    scene.beat("n1", made=47.0 - year, logged_ms=int((START_S + 47.0) * 1000))
    assert _first_settled(scene).complete


def test_a_clock_that_was_set_back_makes_nobody_wait() -> None:
    scene = Scene(nodes=NODES)
    _crash(scene, made=47.0 - 3600)
    assert _first_settled(scene).complete
