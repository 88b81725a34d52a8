"""Where an attempt failed, and which of all that it printed is the cause."""

from __future__ import annotations

import random

import pytest

from midwatch.streams.records import Hit, Hits, Line, Progress, Role
from unit.agents.detect.incident.scene import START_S, Scene


@pytest.mark.capability("S000-07")
def test_a_failure_within_an_evaluation_is_placed_there() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.progress(20, phase="evaluation")
    scene.line("oom", transient=False)
    scene.ended()
    scene.last_words()
    verdict = scene.settled()[-1].verdict
    assert (verdict.error_type, verdict.step, verdict.phase) == ("oom", 20, "evaluation")


@pytest.mark.capability("S004-25")
def test_an_end_that_no_line_explains_names_the_variables_that_would_tell_more() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.ended()
    scene.last_words()
    verdict = scene.settled()[-1].verdict
    assert (verdict.state, verdict.error_type) == ("failed", "unknown")
    for variable in ("LOGLEVEL=DEBUG", "NCCL_DEBUG=INFO", "TORCH_DISTRIBUTED_DEBUG=DETAIL"):
        assert variable in verdict.remedy


@pytest.mark.capability("S001-35")
def test_a_cancel_of_which_nobody_is_named_is_judged_as_a_crash_by_slurm() -> None:
    scene = Scene(policy="megatron_transient")
    scene.spec()
    scene.train(range(1, 21))
    scene.ended(mode="ended", error_type="cancelled", cluster="slurm")
    scene.last_words()
    verdict = scene.settled()[-1].verdict
    assert (verdict.error_type, verdict.subsystem) == ("cancelled", "slurm")
    decision = scene.decisions[-1]
    assert (decision.action, decision.restart_limit) == ("restart", 3), "the limit of crashes"


def _of_rank(scene: Scene, rank: int, error_type: str, role: Role, at: float, *, transient: bool) -> Hit:
    """One line in the rank's own file."""
    path, generation = f"/logs/rank_{rank}.log", f"r{rank}"
    line = Line(f"{error_type} of rank {rank}", path, 9, 800, START_S + at, "n0", rank=rank)
    hit = Hit(
        f"rule_{error_type}", role, error_type, "test", "error", transient, line, 900, generation, captures={}
    )
    scene.say(Hits(scene.origin("n0"), "bundle", hits=(hit,), ends={generation: 900}))
    return hit


@pytest.mark.capability("N-4")
def test_the_last_words_of_4096_ranks_are_one_decision_whose_cause_is_the_earliest_of_them() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    ranks = list(range(4096))
    random.Random(4096).shuffle(ranks)
    for rank in ranks:
        _of_rank(scene, rank, "exception", "cause", 20 + rank / 4096, transient=False)
    scene.ended()
    scene.last_words()
    (incident,) = scene.settled()
    assert ranks.index(0) > 512, "it came late"
    assert incident.verdict.root_line == "exception of rank 0"
    assert len(scene.decisions) == 1


def test_a_quiet_cause_that_comes_behind_a_thousand_loud_consequences_is_the_cause() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    for rank in range(1000):
        _of_rank(scene, rank, "nccl_timeout", "consequence", 25, transient=True)
    _of_rank(scene, 1000, "oom", "cause", 24, transient=False)
    scene.ended()
    scene.last_words()
    assert scene.settled()[-1].verdict.error_type == "oom"
    assert scene.actions()[-1] == "stop"


def test_so_many_kinds_of_failure_hold_no_more_lines_and_the_earliest_cause_stays() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    for rank in range(900):
        _of_rank(scene, rank, f"kind_{rank % 90}", "cause", 30 - rank / 900, transient=False)
    assert len(scene.watch.job.state.held) <= 640
    scene.ended()
    scene.last_words()
    assert scene.settled()[-1].verdict.root_line == "kind_89 of rank 899"


def _of_slurm(scene: Scene, number: int, text: str, at: float, **fields: object) -> None:
    """One line of the batch script's output, in a chunk of its own."""
    line = Line(text, "/logs/slurm-1.out", number, number * 80, START_S + at, "n0")
    given: dict[str, object] = {"fallback": True, "captures": {}} | fields
    hit = Hit(subsystem="slurm", severity="error", line=line, end=number * 80 + 80, generation="s", **given)  # type: ignore[arg-type]  # a test names only fields that exist
    scene.say(Hits(scene.origin("n0"), "bundle", hits=(hit,), ends={"s": number * 80 + 80}))


def test_a_line_that_prints_only_its_second_stands_behind_those_that_an_earlier_read_brought() -> None:
    """srun cancels a step because a task died: one read brings the death, the next one the cancel, whose
    printed second began before that first read."""
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    died, cancelled = "srun: error: n0: task 0: Aborted", "*** STEP 1.0 ON n0 CANCELLED AT 08:39:50 ***"
    for number, text, at, fields in (
        (1, died, 24.396, {"role": "consequence", "error_type": "native_crash", "captures": {"task": "0"}}),
        (3, cancelled, 24.0, {"role": "cause", "error_type": "cancelled"}),
    ):
        _of_slurm(scene, number, text, at, rule=f"rule_{number}", transient=None, **fields)
    _of_rank(scene, 0, "nccl_timeout", "consequence", 24.999999, transient=True)
    scene.ended()
    scene.last_words()
    assert scene.settled()[-1].verdict.error_type == "nccl_timeout"


def test_nodes_that_log_to_one_path_each_have_their_own_file() -> None:
    """Every node writes /var/log/train.log on a disk of its own. One runs out of memory; the steps that the
    other had made before have higher numbers in its file, and come late."""
    scene = Scene(nodes=("n0", "n1"))
    scene.spec()
    scene.train(range(1, 21))
    path = "/var/log/train.log"
    line = Line("oom!", path, 5, 400, START_S + 25, "n0")
    oom = Hit("rule_oom", "cause", "oom", "test", "error", False, line, 500, "g")
    scene.say(Hits(scene.origin("n0"), "bundle", hits=(oom,), ends={"g": 500}))
    steps, ends = (21, 22, 23, 24), (9000, 9100, 9200, 9300)
    times = tuple(START_S + number for number in steps)
    made = Progress(path, "g", "iteration", "training", steps, ends, (90, 91, 92, 93), times)
    scene.say(Hits(scene.origin("n1"), "bundle", progress=(made,), ends={"g": 9300}))
    scene.ended()
    scene.last_words()
    assert scene.settled()[-1].verdict.error_type == "oom"
