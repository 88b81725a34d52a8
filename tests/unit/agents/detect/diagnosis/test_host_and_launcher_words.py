"""What launchers, schedulers, Spark and the host say of an end, and what they say of none."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "".join(
    f"step {10 * n} loss {3.1 - n * 0.07:.3f} lr 1.0e-04 time 0.41{n % 3}\n" for n in range(1, 13)
)
MORE = "".join(
    f"step {10 * n} loss {3.1 - n * 0.07:.3f} lr 1.0e-04 time 0.41{n % 3}\n" for n in range(13, 30)
)
EXECUTOR = "26/03/02 11:00:00 ERROR TaskSchedulerImpl: Lost executor 3 on n4: "
UNIT = "Mar 02 11:00:00 n4 systemd[1]: toy.service: "
GRPC = '{"created":"@77.1","description":"EOF","file":"toy.c","file_line":9,"grpc_status":14}'


@pytest.mark.parametrize(
    ("line", "kind", "action"),
    [
        ("n4.example.org: rank 13 died from signal 9", "host_oom", "stop"),
        ("n4.example.org: rank 13 died from signal 11 and dumped core", "native_crash", "stop"),
        ("n4.example.org: rank 13 died from signal 15", "cancelled", "hold"),
        ("ERROR:  One or more process (first noticed rank 12) terminated with signal 9", "host_oom", "stop"),
        ("[NID 00012] 2026-03-02 11:00:00 Apid 77: OOM killer terminated this process.", "host_oom", "stop"),
        ("distributed.nanny - INFO - Worker process 4188 was killed by signal 11", "native_crash", "stop"),
        (f"{EXECUTOR}Executor heartbeat timed out after 166904 ms", "communication", "restart"),
        (f"{EXECUTOR}worker lost: n4:7078 got disassociated", "communication", "restart"),
        (
            f"E tensorflow/toy/master_session.cc:9] Cleanup partition error: Unavailable: {GRPC}",
            "communication",
            "restart",
        ),
        ("job 7781 exceeded MEM usage hard limit (2528 > 1126)", "host_oom", "stop"),
        ("TERM_THREADLIMIT: job killed after reaching LSF thread limit.", "config", "stop"),
        ("TERM_REQUEUE_OWNER: job killed and requeued by owner.", "preemption", "restart"),
        ("012 (77.000.000) 2026-03-02 11:00:00 Job was held.", "config", "stop"),
        ("PodGC: node no longer exists", "slurm_failure", "restart"),
        (
            "Gdk-Message: 11:52:40.118: toy.py: Fatal IO error 11 (Resource temporarily unavailable)"
            " on X server toyhost:10.0.",
            "communication",
            "hold",
        ),
        ("Warning  Evicted  7m  kubelet  The node was low on resource: inodes. ", "storage", "stop"),
        ("message: Internal error occurred for the current attempt.", "slurm_failure", "restart"),
        (f"{UNIT}A process of this unit has been killed by the OOM killer.", "host_oom", "stop"),
        (f"{UNIT}Main process exited, code=killed, status=9/KILL", "host_oom", "stop"),
        ("run.sh: line 9:  4188 CPU time limit exceeded  python train.py", "config", "stop"),
        ("/usr/bin/env: 'python': No such file or directory", "config", "stop"),
        ("run.sh: line 4: /opt/toy/train: cannot execute binary file: Exec format error", "config", "stop"),
        ("[77.1] NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!", "hardware", "restart"),
        ("[77.1] pcieport 0000:00:03.0: pciehp: Slot(3): Link Down", "hardware", "restart"),
        ("OSError: [Errno 524] Unknown error 524: '/mnt/toy/data.h5'", "storage", "hold"),
        (
            "error dialing backend: dial tcp 10.8.0.4:10250: connect: no route to host",
            "communication",
            "hold",
        ),
        (
            "toy.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: https://huggingface.co/toy",
            "communication",
            "restart",
        ),
        ("Job exceeded resource mem", "host_oom", "stop"),
        ("Job exceeded resource walltime", "slurm_failure", "stop"),
        (
            "Workload was evicted as there was no replacement for unhealthy node(s): n4",
            "slurm_failure",
            "restart",
        ),
        ("[ERROR] Not enough space left in /run/enroot (4188123 KB needed)", "storage", "stop"),
        ("has not produced any output (state: NODE_FAIL)", "slurm_failure", "restart"),
        ("has not produced any output (state: OUT_OF_MEMORY)", "host_oom", "stop"),
        ("Slurm Job_id=77 Name=toy Failed, Run time 02:00:00, NODE_FAIL", "slurm_failure", "restart"),
        ("State: TIMEOUT (exit code 0)", "slurm_failure", "stop"),
        ("77.0         python            toy         32 OUT_OF_ME+    0:125", "host_oom", "stop"),
        ("rsync error: error in socket IO (code 10) at io.c(823) [sender=3.2.3]", "communication", "hold"),
        (
            "InternalError: Error writing (tmp) checkpoint file: /toy/model.ckpt-6: "
            "Resource exhausted: /toy/model.ckpt-6",
            "storage",
            "stop",
        ),
    ],
)
def test_the_word_tells_what_ended_the_run(watch: Watch, line: str, kind: str, action: str) -> None:
    done = watch(f"{STEPS}{line}\n")
    assert (done.verdict.error_type, done.verdict.root_line, done.decision.action) == (kind, line, action)


@pytest.mark.parametrize(
    "line",
    [
        "distributed.nanny - INFO - Worker process 4188 was killed by signal 11",
        f"{EXECUTOR}Executor heartbeat timed out after 166904 ms",
        "State: TIMEOUT (exit code 0)",
        "76.0         python            toy         32 OUT_OF_ME+    0:125",
        "toy-worker-0   0/1     Evicted   0          2m",
        "id: cannot find name for user ID 4188",
        "Error reported to Coordinator: <class 'toy.UnavailableError'>, OS Error",
        'Lmod has detected the following error:  The following module(s) are unknown: "cuda/12.9"',
        "E0302 11:00:00 memcache.go:77] Get toy: dial tcp 10.8.0.1:443: i/o timeout",
        "requests.exceptions.HTTPError: 502 Server Error: Bad Gateway for url: https://tracker.example.org/api",
    ],
)
def test_a_word_behind_which_the_run_goes_on_ends_nothing(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n{MORE}").verdict.state != "failed"


def test_a_module_that_was_not_found_explains_an_end_that_nothing_else_explains(watch: Watch) -> None:
    module = 'Lmod has detected the following error:  The following module(s) are unknown: "cuda/12.9"'
    assert watch(f"{module}\nloading the toy\n").verdict.state != "failed"
    done = watch(f"{module}\nsrun: error: n4: task 3: Exited with exit code 127\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("config", module)


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError': /simple/toy/",
        "srun: Job 77 step creation still disabled, retrying (Requested nodes are busy)",
        "wandb: 429 encountered (rate limit exceeded, retrying in 2.2 seconds.), retrying request",
        "/usr/bin/id: cannot find name for user ID 4188",
    ],
)
def test_a_message_that_is_complete_in_one_line_excuses_no_exception_below_it(
    watch: Watch, line: str
) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/toy/train.py", line 9, in <module>\n    main()\n'
        "ValueError: a toy needs 3 values, got 4\n"
    )
    done = watch(f"{STEPS}{line}\n{raised}")
    assert done.verdict.root_line == "ValueError: a toy needs 3 values, got 4"


def test_a_client_that_prints_its_exception_below_a_retry_is_excused(watch: Watch) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/toy/client.py", line 9, in send\n    post()\n'
        "ConnectionError: the toy service hung up\n"
    )
    assert watch(f"{STEPS}WARNING toy upload failed, retrying\n{raised}{MORE}").verdict.state != "failed"


@pytest.mark.parametrize(
    ("why", "error_type", "action"),
    [
        ("execution took longer than 1h0m0s seconds", "slurm_failure", "stop"),
        ("canceled", "cancelled", "restart"),
        ("exit code 1", "exception", "hold"),
    ],
)
def test_the_runner_of_a_ci_job_tells_how_it_ended(
    watch: Watch, why: str, error_type: str, action: str
) -> None:
    done = watch(f"{STEPS}ERROR: Job failed: {why}\n")
    assert (done.verdict.error_type, done.decision.action) == (error_type, action)


def test_what_a_ci_job_s_script_got_over_is_no_failure(watch: Watch) -> None:
    missing = "./paint.sh: line 4: toybrush: command not found\n"
    assert watch(f"{missing}the toys are painted by hand\nJob succeeded\n").verdict.state != "failed"
    assert watch(f"{missing}the toys are painted by hand\n").verdict.state == "failed"
    assert watch(f"Job succeeded\nthe next toy\n{missing}").verdict.state == "failed"
