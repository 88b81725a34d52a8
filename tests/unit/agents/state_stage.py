"""States of jobs at moments that differ, as the workers write them; the source of `state_blobs/*.json`."""

from __future__ import annotations

from dataclasses import replace

from midwatch.agents.decide.state import DecideState
from midwatch.agents.detect.incident.state import JobState, NodeState
from midwatch.streams.records import LINES_READ, Hits, Outcome, Rate, Stop, codec
from unit.agents.detect.incident.scene import JOB, START_S, Scene

_CANCELS = "policy: own\nmodes:\n  stall: {kind: guarded, default: hold, guards: [{do: cancel}]}\n"

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
    taken["bounded_and_cancelled"] = _bounded()
    scene = Scene()
    scene.train(range(1, 5))
    scene.line("storage", role="context", transient=True)
    taken["noted"] = _blobs(scene)
    taken["counting"] = _counting()
    return taken


def _bounded() -> dict[str, bytes]:
    """A rule's watch has ended, another's rate is spent, and the job's own policy ordered a cancel."""
    scene = Scene()
    scene.spec(policy_text=_CANCELS, any_line=True)
    hit = scene.line("storage", transient=True)
    further = replace(hit, end=9, limit=Rate(1, 600.0), rule="noisy")
    stop = Stop("warming_up", "/logs/n0.log", "n0", 9, 9, START_S)
    scene.say(Hits(scene.origin("n0"), "bundle", (further,), ends={"n0": 9}, stops=(stop,)))
    scene.offsets["n0"] = 9
    scene.train(range(10, 15))
    scene.beats(seconds=120)
    scene.beat("n0", samples={LINES_READ: 12})
    return _blobs(scene)


def _counting() -> dict[str, bytes]:
    """Loops that print no step go on beside a line that may end the job."""
    scene = Scene()
    scene.line("exception", transient=False)
    for count, rule in (("4", "bar"), ("5", "bar"), ("1:0", "batches")):
        scene.now += 1
        scene.progress(-1, count=count, rule=rule)
    scene.progress(-1, count="7", rule="any_step", shows="climb")
    return _blobs(scene)


def _blobs(scene: Scene) -> dict[str, bytes]:
    job = scene.watch.job
    return {
        "job": codec.state_to_bytes(job.state),
        "node": codec.state_to_bytes(job.nodes["n0"]),
        "decide": codec.state_to_bytes(scene.watch.decided),
    }
