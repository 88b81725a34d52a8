"""A job's word of its success: a further training takes it back, late lines of other nodes do not."""

from __future__ import annotations

from unit.agents.detect.incident.scene import Scene

NODES = ("n0", "n1")


def trained(node: str) -> Scene:
    """Two nodes train, one says that the job is done, then `node` prints steps, and the closing crashes."""
    scene = Scene(NODES)
    scene.spec()
    for number in range(1, 21):
        scene.now += 1
        scene.progress(number, node="n0", loss="2.0")
    scene.line("done", role="success", node="n0")
    for number in (18, 19, 21):
        scene.progress(number, node=node, loss="2.0")
    scene.line("native_crash", role="consequence", node="n0")
    scene.ended(exit_code=0)
    scene.last_words()
    return scene


def test_late_steps_of_another_node_do_not_take_it_back() -> None:
    scene = trained("n1")
    assert scene.settled()[-1].verdict.state == "healthy"
    assert scene.commands == []


def test_steps_behind_it_in_the_same_file_do() -> None:
    assert trained("n0").settled()[-1].verdict.state == "failed"


def looped(node: str) -> list[str]:
    """As `trained`, but `node` prints a loss and where its loop is, and no steps; the verdicts' states."""
    scene = Scene(NODES)
    scene.spec()
    for number in range(1, 21):
        scene.now += 1
        scene.progress(number, node="n0", loss="2.0")
    scene.line("done", role="success", node="n0")
    for count in ("0.1", "0.2", "0.3"):
        scene.progress(-1, node=node, loss="2.0", count=count, rule="trainer_log")
    scene.line("native_crash", role="consequence", node="n0")
    scene.ended(exit_code=0)
    scene.last_words()
    return [each.verdict.state for each in scene.settled()]


def test_a_loop_without_steps_takes_it_back_in_the_same_file_alone() -> None:
    assert looped("n0") == ["failed"]
    assert looped("n1") == ["healthy"]
