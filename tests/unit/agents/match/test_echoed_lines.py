"""Ray's echo of a line counts only where the line that it repeats was cut away."""

from __future__ import annotations

from unit.agents.conftest import Watch

TIMED_OUT = (
    "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLGATHER, "
    "NumelIn=4, NumelOut=32, Timeout(ms)=600000) ran for 600051 milliseconds before timing out."
)
ECHO = " [repeated 3x across cluster]"
STEPS = "".join(f"(TaskRunner pid=11) step:{step} - actor/loss:0.5\n" for step in range(1, 30))


def test_an_echo_of_which_the_first_line_was_cut_away_tells_the_failure(watch: Watch) -> None:
    done = watch(f"(WorkerDict pid=4402) {TIMED_OUT}{ECHO}\n(WorkerDict pid=4402) frame #0: c10{ECHO}\n")
    assert (done.verdict.state, done.verdict.error_type) == ("failed", "nccl_timeout")
    assert done.verdict.root_line.endswith(ECHO)


def test_the_first_line_is_the_root_where_it_stands(watch: Watch) -> None:
    first = f"(WorkerDict pid=4401) {TIMED_OUT}"
    done = watch(f"{STEPS}{first}\n(WorkerDict pid=4402) {TIMED_OUT.replace('Rank 5', 'Rank 6')}{ECHO}\n")
    assert done.verdict.root_line == first


def test_an_echo_of_what_the_job_got_over_fails_nothing(watch: Watch) -> None:
    failed = "RuntimeError: CUDA error: device-side assert triggered"
    log = (
        f"(RayTrainWorker pid=3) Traceback (most recent call last):\n"
        f'(RayTrainWorker pid=3)   File "toy.py", line 7, in train\n(RayTrainWorker pid=3) {failed}\n'
        f"{STEPS}(RayTrainWorker pid=4) {failed}{ECHO}\n"
    )
    assert watch(log).verdict.state == "healthy"
