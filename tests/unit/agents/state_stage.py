"""States of jobs at moments that differ, as the workers write them; the source of `state_blobs/*.json`."""

from __future__ import annotations

from midwatch.agents.decision import DecideState
from midwatch.agents.incident.state import JobState, NodeState
from midwatch.streams import codec
from midwatch.streams.records import Outcome
from unit.agents.incident.scene import JOB, Scene

CLASSES: dict[str, type] = {"job": JobState, "node": NodeState, "decide": DecideState}


def moments() -> dict[str, dict[str, bytes]]:
    """By moment, the blobs by kind."""
    scene = Scene(nodes=("n0", "n1"))
    scene.spec(max_restarts=2, limits={"training": 60.0})
    scene.train(range(1, 21))
    taken = {"training": _blobs(scene)}
    scene.line("nccl", transient=True)
    scene.line("oom", transient=False, node="n1", text="CUDA out of memory")
    scene.progress(21, loss="nan")
    taken["suspected"] = _blobs(scene)
    scene.ended()
    scene.last_words("n0")
    scene.now += 30
    scene.beat("n0")
    taken["settled"] = _blobs(scene)
    scene = Scene(nodes=("n0", "n1"))
    scene.spec()
    scene.train(range(1, 21))
    scene.beats(seconds=120)
    scene.accepted(scene.commands[-1])
    taken["hung_and_ordered"] = _blobs(scene)
    id_ = scene.commands[-1].id
    scene.say(
        Outcome(JOB, id_, 1, "restart", "done", "ok", new_incarnation="local:200:1", checkpoint_step=10)
    )
    scene.incarnation = "local:200:1"
    scene.beat("n0")
    taken["second_attempt"] = _blobs(scene)
    return taken


def _blobs(scene: Scene) -> dict[str, bytes]:
    job = scene.watch.job
    return {
        "job": codec.state_to_bytes(job.state),
        "node": codec.state_to_bytes(job.nodes["n0"]),
        "decide": codec.state_to_bytes(scene.watch.decided),
    }
