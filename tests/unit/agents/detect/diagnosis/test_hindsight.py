"""Lines that are no evidence by themselves: they explain an end of which nothing else says why."""

from __future__ import annotations

import pytest

from midwatch.agents.detect.diagnosis.verdict import AttemptEnd, diagnose
from midwatch.streams.records import Hit, Line, Role, SchedulerFact
from unit.agents.conftest import Watch
from unit.agents.detect.incident.scene import Scene

STEPS = "".join(f"step: {n}  loss:  2.1  grad_norm:  0.3\n" for n in range(1, 5))
END = "srun: error: n4: task 3: Exited with exit code 1"
WARNED = (
    "[W302 11:53:01.1 socket.cpp:426] [c10d] The server socket has failed to bind to 0.0.0.0:29500 (errno: 98"
    " - Address already in use)."
)


def test_a_warning_is_the_cause_where_the_end_alone_is_known(watch: Watch) -> None:
    done = watch(f"{WARNED}\n{END}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("port_in_use", WARNED)
    assert done.decision.action == "hold"


@pytest.mark.parametrize("behind", ["", f"{STEPS}"])
def test_a_warning_makes_no_failure_of_a_run(watch: Watch, behind: str) -> None:
    assert watch(f"{WARNED}\n{behind}").verdict.state != "failed"


def test_a_warning_of_a_run_that_went_on_explains_no_later_end(watch: Watch) -> None:
    assert watch(f"{WARNED}\n{STEPS}{END}\n").verdict.root_line == END


def test_a_better_line_is_taken_before_any_warning(watch: Watch) -> None:
    error = "ValueError: the toy broke"
    assert watch(f"{WARNED}\n{error}\n{END}\n").verdict.root_line == error


def test_warnings_that_point_different_ways_explain_nothing(watch: Watch) -> None:
    disk = "(raylet) [2026-03-02 11:00:00,213 E 77 78] file_system_monitor.cc:116: /tmp/ray is over 95% full,"
    assert watch(f"{WARNED}\n{disk} available space: 7 GB\n{END}\n").verdict.root_line == END


UCX = "[1714.1] [n4:88:0] ib_iface.c:966  UCX  ERROR ibv_create_cq(cqe=4096) failed: Operation not supported"


def test_what_ucx_complains_of_is_the_cause_only_where_the_end_says_nothing_better(watch: Watch) -> None:
    assert watch(f"{UCX}\nMPI takes another way\n").verdict.state != "failed"
    assert watch(f"{UCX}\n{STEPS}").verdict.state != "failed"
    done = watch(f"{UCX}\n{END}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("communication", UCX)
    assert done.decision.action == "hold"
    assert watch(f"{UCX}\nValueError: the toy broke\n").verdict.root_line == "ValueError: the toy broke"


@pytest.mark.parametrize(
    "missing",
    [
        "/toy/venv/bin/activate: No such file or directory",
        "activate: No such file or directory",
        "/toy/miniconda3/bin/conda: No such file or directory",
        "conda: command not found",
        "cd: /toy/runs: No such file or directory",
    ],
)
def test_a_script_goes_on_without_its_environment_or_folder(watch: Watch, missing: str) -> None:
    told = f"run.sh: line 4: {missing}"
    assert watch(f"{told}\nloaded the toy\n").verdict.state != "failed"
    assert watch(f"{told}\n{END}\n").verdict.root_line == told
    absent = "ModuleNotFoundError: No module named 'toy'"
    assert watch(f"{told}\n{absent}\n{END}\n").verdict.root_line == absent
    program = "run.sh: line 5: ./toy/train: No such file or directory"
    assert watch(f"{told}\n{program}\n").verdict.root_line == program


def test_what_a_service_beside_the_run_says_explains_nothing(watch: Watch) -> None:
    beside = "wandb: ERROR Error while calling W&B API: context deadline exceeded"
    assert watch(f"{beside}\n{END}\n").verdict.root_line == END


def test_a_failure_that_its_writer_calls_an_information_explains_nothing(watch: Watch) -> None:
    told = "INFO:toy: no backend 'tpu': libtpu.so: cannot open shared object file"
    assert watch(f"{told}\n{END}\n").verdict.root_line == END


def _noted(transient: bool | None, role: Role = "context") -> Hit:
    line = Line("the toy is late", "/logs/n0.log", 7, 70, 1000.0, "n0")
    return Hit("toy_late", role, "storage", "storage", "warning", transient, line, 80, "n0")


def _ending(said: SchedulerFact | None) -> AttemptEnd:
    return AttemptEnd(said, None, "training", None, None, False, True, (), "bundle", noted=(_noted(True),))


def test_the_schedulers_word_of_a_failed_end_is_explained_but_never_to_a_restart() -> None:
    fact = SchedulerFact("job", "slurm:1:0", "1", "RUNNING", "FAILED", True, exit_code=1, mode="crash")
    verdict = diagnose((), _ending(fact)).verdict
    assert (verdict.error_type, verdict.root_line, verdict.transient) == ("storage", "the toy is late", None)


@pytest.mark.parametrize(
    "fact",
    [
        SchedulerFact("job", "slurm:1:0", "1", "RUNNING", "COMPLETED", True, exit_code=0, mode="success"),
        SchedulerFact(
            "job", "slurm:1:0", "1", "RUNNING", "PREEMPTED", True, error_type="preemption", mode="crash"
        ),
        None,
    ],
)
def test_an_end_that_was_good_or_is_explained_asks_no_warning(fact: SchedulerFact | None) -> None:
    assert diagnose((), _ending(fact)).verdict.error_type != "storage"


def test_a_warning_is_forgotten_once_the_run_is_two_steps_further() -> None:
    scene = Scene()
    scene.train(range(1, 5))
    scene.line("storage", role="context", transient=True)
    assert len(scene.watch.job.state.noted) == 1
    scene.train(range(5, 8))
    assert not scene.watch.job.state.noted


def test_a_warning_before_a_bare_end_is_told_by_the_watch() -> None:
    scene = Scene()
    scene.train(range(1, 5))
    scene.line("storage", role="context", transient=True, text="the toy is late")
    scene.ended()
    scene.last_words()
    incident = scene.settled()[-1]
    verdict = incident.verdict
    assert incident.line_ms is not None
    assert (verdict.error_type, verdict.root_line) == ("storage", "the toy is late")
    assert scene.actions()[-1] == "hold"
