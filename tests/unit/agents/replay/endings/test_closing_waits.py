"""A saved log whose last line is a wait for others, or a shell's word. A person decides."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "step 1 loss 2.0\nstep 2 loss 1.9\n"
LIGHTNING = "Initializing distributed: GLOBAL_RANK: {}, MEMBER: {}/4\n"


@pytest.mark.parametrize(
    "last",
    [
        LIGHTNING.format(0, 1),
        "initializing ddp: GLOBAL_RANK: 0, MEMBER: 1/2\n",
        "INFO:toy:initializing ddp: GLOBAL_RANK: 0, MEMBER: 1/2\n",
        "| distributed init (rank 0): env://\n",
        "| distributed init (rank 0, world 8): env://\n",
        "2026-03-02 11:52:40 | INFO | toy.utils | distributed init (rank 0): tcp://toy1:29500\n",
        "> initializing torch distributed ...\n",
        "0: > initializing torch distributed ...\n",
        "[2026-03-02 11:52:40,118] [INFO] [comm.py:7:init_distributed] Initializing TorchBackend in "
        "DeepSpeed with backend nccl\n",
        "I0302 11:52:40.118 88 distributed.py:9] Starting JAX distributed service on [::]:1234\n",
    ],
)
def test_a_log_that_ends_where_rank_0_waits_for_the_others_shows_a_hang(watch: Watch, last: str) -> None:
    done = watch("the toy starts\n" + last)
    assert (done.verdict.state, done.verdict.error_type) == ("failed", "hang")
    assert done.verdict.root_line == last.strip()
    assert done.decision.action == "hold"
    assert "just started" in done.decision.reason
    assert watch("the toy starts\n" + last + "the toys have met\n").verdict.state == "unknown"
    assert watch(STEPS + last).verdict.state == "healthy"


def test_the_last_of_several_members_is_shown(watch: Watch) -> None:
    done = watch(LIGHTNING.format(0, 1) + "[rank: 1] Seed set to 42\n" + LIGHTNING.format(1, 2))
    assert (done.verdict.error_type, done.verdict.root_line_number) == ("hang", 3)


COUNTED = "(w0) I0000 00:00:1772449960.118 88 coordination_service.cc:9] Waiting for {}/2 tasks to connect.\n"
MISSING = "(w0) I0000 00:00:1772449960.119 88 coordination_service.cc:9] Example stragglers:\n"
MISSING += "(w0) /job:worker/replica:0/task:1\n"
CONNECTED = (
    "(w0) I0000 00:00:1772449960.12 88 coordination_service_agent.cc:9] Coordination agent has connected.\n"
)


@pytest.mark.parametrize("rest", ["", MISSING, MISSING + CONNECTED])
def test_tasks_that_the_coordination_service_still_misses_never_came(watch: Watch, rest: str) -> None:
    done = watch("the toy starts\n" + COUNTED.format(1) + rest)
    assert (done.verdict.error_type, done.verdict.root_line_number) == ("rendezvous", 2)
    assert done.decision.action == "hold"
    assert watch(COUNTED.format(1) + MISSING + COUNTED.format(0)).verdict.state == "unknown"
    assert watch(COUNTED.format(1) + rest + "the toys have met\n").verdict.state == "unknown"
    assert watch(STEPS + COUNTED.format(1) + rest).verdict.state == "healthy"


@pytest.mark.parametrize("last", [LIGHTNING.format(1, 2), "| distributed init (rank 3): env://\n"])
def test_another_rank_may_say_nothing_more_for_the_rest_of_the_run(watch: Watch, last: str) -> None:
    assert watch("the toy starts\n" + last).verdict.state == "unknown"


def test_a_job_of_one_rank_waits_for_nobody(watch: Watch) -> None:
    assert watch("initializing ddp: GLOBAL_RANK: 0, MEMBER: 1/1\n").verdict.state == "unknown"
    assert watch("| distributed init (rank 0, world 1): env://\n").verdict.state == "unknown"


@pytest.mark.parametrize(
    "last",
    [
        "run.sh: line 3: cd: /toy/current: No such file or directory\n",
        "run.sh: line 4: module: command not found\n",
        "/var/spool/slurmd/job77/slurm_script: line 3: conda: command not found\n",
    ],
)
def test_a_log_that_ends_with_what_a_script_lacks_has_failed(watch: Watch, last: str) -> None:
    done = watch("the toy starts\n" + last)
    assert (done.verdict.error_type, done.verdict.root_line) == ("config", last.strip())
    assert done.decision.action == "hold"
    assert done.decision.reason == "the log ends with a shell's word on what its script lacks"
    assert watch("the toy starts\n" + last + "the toy runs\n").verdict.state == "unknown"
    assert watch(STEPS + last).verdict.state == "healthy"
    assert watch("training finished\n" + last).verdict.state != "failed"


CONDA = (
    "\nCommandNotFoundError: Your shell has not been properly configured to use 'conda {}'.\n"
    "To initialize your shell, run\n\n    $ conda init <SHELL_NAME>\n\nCurrently supported shells are:\n"
    "  - bash\n  - zsh\n\n"
    "IMPORTANT: You may need to close and restart your shell after running 'conda init'.\n\n"
)


def test_a_log_of_little_but_conda_s_advice_on_its_shell_has_failed(watch: Watch) -> None:
    done = watch("the toy starts\n" + CONDA.format("activate"))
    assert (done.verdict.error_type, done.verdict.root_line_number) == ("config", 3)
    assert done.decision.action == "hold"
    work = "".join(f"the toy is at {number}\n" for number in range(40))
    for log in (
        work + CONDA.format("activate"),
        CONDA.format("deactivate"),
        CONDA.format("activate") + "done\n",
    ):
        assert watch(log).verdict.state != "failed"


def test_a_log_that_ends_where_a_port_of_the_network_failed_shows_it(watch: Watch) -> None:
    port = "n4:88:9{} [{}] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : port error\n\n"
    down = "".join(port.format(rank, rank) for rank in range(8))
    done = watch(STEPS + down)
    assert (done.verdict.error_type, done.verdict.root_line_number) == ("nccl", 3)
    assert done.decision.action == "hold"
    assert "ports of the network failed" in done.decision.reason
    assert watch(STEPS + down + "step 3 loss 1.8\n").verdict.state == "healthy"
