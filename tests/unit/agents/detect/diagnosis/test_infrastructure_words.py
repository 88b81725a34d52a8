"""What batch systems, fabrics, drivers and compilers say, beside the louder line that is not the cause."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "Epoch 3 step 40/900 loss 2.31\nEpoch 3 step 50/900 loss 2.30\n"
MORE = "Epoch 3 step 60/900 loss 2.29\nEpoch 3 step 70/900 loss 2.29\nEpoch 3 step 80/900 loss 2.28\n"
DELETED = "Job deleted at request of root@n1"
MOAB = "MOAB_INFO:  job exceeded wallclock limit"
PREEMPTED = "(toy, pid=77) I 03-02 11:00:00 controller.py:77] The cluster is preempted."
NODE_GONE = "(toy, pid=77) E 03-02 11:00:31 toy.py:7] Command failed with code 255: python3 -u -c 'toy'"
CRASHED = "[n4:4188] *** Process received signal ***\n[n4:4188] Signal: Aborted (6)\n"
HFI = "n4.4188toy_init: An unrecoverable error occurred while communicating with the driver"
POLL = (
    "MPIDI_OFI_handle_cq_error(77)......: OFI poll failed (ofi_events.c:79:toy:Input/output error - CANCELED)"
)
REDUCE = (
    "Abort(77) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Allreduce: Other MPI error, error stack:\n"
)
HCCP = "EJ0001: Failed to initialize the HCCP process. Reason: Maybe the last training process is running."
TSD = "        tsd client wait response fail, device response code[7]. toy"
NEVER_MET = (
    "2026-Mar-02 11:52:40.0210 332:508 [31] bootstrap.cc:89 CCOM WARN Timeout waiting for incoming "
    "connection (waited 120 sec)"
)
LOCK = "[n4:4188] PMIX ERROR: ERROR in file gds_ds12_lock_pthread.c at line 168"
XID = "NVRM: Xid (PCI:0000:b8:00): 45, pid=77, name=toy"
ENDPOINT = "Transport endpoint is not connected"


@pytest.mark.parametrize(
    ("log", "error_type", "action", "root"),
    [
        (f"{DELETED}\n{MOAB}\n", "slurm_failure", "stop", MOAB),
        (f"{DELETED}\n", "cancelled", "restart", DELETED),
    ],
)
def test_moab_says_why_torque_deleted_the_job(
    watch: Watch, log: str, error_type: str, action: str, root: str
) -> None:
    """The server's own account asks for the deletion either way; only Moab's line tells the limit."""
    done = watch(STEPS + log)
    assert (done.verdict.error_type, done.decision.action, done.verdict.root_line) == (
        error_type,
        action,
        root,
    )


def test_a_cluster_that_was_preempted_explains_the_commands_that_fail_there(watch: Watch) -> None:
    done = watch(f"{STEPS}{PREEMPTED}\n{NODE_GONE}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("preemption", PREEMPTED)
    assert done.decision.action == "restart"


def test_a_command_that_fails_on_a_cluster_that_stands_was_not_preempted(watch: Watch) -> None:
    assert watch(f"{STEPS}{NODE_GONE}\n").verdict.error_type != "preemption"


def test_a_run_that_was_brought_back_on_another_cluster_is_well(watch: Watch) -> None:
    assert watch(f"{STEPS}{PREEMPTED}\n{MORE}").verdict.state != "failed"


@pytest.mark.parametrize(
    ("last", "error_type"),
    [
        ("PreemptionError: Nodes of this job got pre-empted. Check if the run has restarted.", "preemption"),
        (f"terminate called after throwing an instance of 'toy'\n  what():  {ENDPOINT}", "communication"),
        (f"OSError: [Errno 107] {ENDPOINT}: '/toy/data'", "storage"),
        ("toy:  20% (7/90) [#    ] eta 1:34:54 |Terminated", "cancelled"),
        ("toy:  20% (7/90) [#    ] eta 1:34:54 |Killed", "host_oom"),
        ("Error in thread 7: CUDA runtime API error cudaErrorInvalidValue (1):", "torch"),
        ("Error in thread 7: CUDA runtime API error cudaErrorECCUncorrectable (214):", "hardware"),
        ("ERROR 77 [neuronxcc.driver.CommandDriver]:  An Internal Compiler Error has occurred", "exception"),
        ("[ERROR] [NCC_EOOM002] toy: the graph needs 30 GB of 24 GB", "oom"),
        ("MPIDI_CRAY_init: GPU_SUPPORT_ENABLED is requested, but GTL library is not linked", "config"),
        ("save failed 3 times, exiting", "checkpoint"),
        ("container creation failed: mount /toy error", "slurm_failure"),
        ("=>> PBS: job killed: ncpus 38.40 exceeded limit 32 (sum)", "slurm_failure"),
        ("Job was active longer than specified deadline", "slurm_failure"),
        ("systemd-oomd[77]: Killed /user.slice/toy.scope due to memory pressure for /user.slice", "host_oom"),
        ("The replica workerpool0-0 ran out-of-memory and exited with a non-zero status of 9", "host_oom"),
        ("toy.Server - [ERROR] waiting for heartbeat timeout > 60000, rank 7 ends", "communication"),
        ("[2026-03-02T11:00:00.128] update_node: node n7 state set to FAIL", "slurm_failure"),
        ("[2026-03-02T11:00:00.128] Killing JobId=7781 on failed node n7", "slurm_failure"),
        ("ERROR: Trial 7 was terminated: allocation failed due to agent failure: toy", "slurm_failure"),
        ("HBM MULTI BIT ECC, Uncorrectable ECC, device_id=7, event_id=0x77, time us=7781.", "hardware"),
        ("TERM_ZOMBIE: Job exited while LSF is not available", "slurm_failure"),
        ("24s   Warning   Evict   pod/toy-worker-3   Pod is evicted, because of reclaim", "preemption"),
        ("Message:     TFJob toy has failed because 1 Worker replica(s) failed.", "slurm_failure"),
        ("[n4:4188] PMIX ERROR: UNREACHABLE in file ptl_tcp.c at line 99", "communication"),
    ],
)
def test_such_last_words_tell_the_kind_of_the_end(watch: Watch, last: str, error_type: str) -> None:
    assert watch(f"{STEPS}{last}\n").verdict.error_type == error_type


@pytest.mark.parametrize(
    "line",
    [
        "save failed, trying again",
        "2026-03-02T11:00:00Z INFO 77 [neuronxcc.driver.CommandDriver]: Compiler status PASS",
        "INFO toy: waiting for heartbeat timeout of 60 s",
        "eta 1:34:54 | 3 of 9 | Terminated",
        "MPICH_GPU_SUPPORT_ENABLED=1",
        "#PBS -l select=1:ncpus=32",
        "INFO toy: readahead is put off due to memory pressure for toy.bin",
        "[2026-03-02T11:00:00.128] update_node: node n7 state set to RESUME",
        "INFO: Trial 7 (Experiment 77) was assigned to an agent",
        "the run takes cards whose HBM corrects multi bit errors",
        "24s   Normal   Evict   podgroup/toy   reclaim",
        "TFJob toy is restarting because 1 Worker replica(s) failed.",
        NEVER_MET,
    ],
)
def test_kin_of_such_words_are_no_failure(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n{MORE}").verdict.state != "failed"


def test_a_trial_whose_agent_was_lost_is_restarted_unless_it_trains_again(watch: Watch) -> None:
    lost = "ERROR: Trial 7 was terminated: agent failed while the container was running: toy\n"
    assert watch(f"{STEPS}{lost}").decision.action == "restart"
    assert watch(f"{STEPS}{lost}{MORE}").verdict.state != "failed"
    own = "ERROR: Trial 7 was terminated: allocation failed: container failed with non-zero exit code: 1\n"
    assert watch(f"{STEPS}{own}").decision.action != "restart"


def test_ranks_that_never_met_on_neuron(watch: Watch) -> None:
    assert watch(f"{NEVER_MET}\n").verdict.error_type == "rendezvous"


def test_a_lock_that_pmix_goes_on_without_is_no_failure(watch: Watch) -> None:
    assert watch(f"{STEPS}{LOCK}\n").verdict.state != "failed"


def test_a_clean_up_counts_by_the_xid_that_it_follows(watch: Watch) -> None:
    """The driver removes a process's channels for a broken card and for the program's own fault alike."""
    card = watch(f"{STEPS}{XID}, caused by previous Xid 149\n")
    assert (card.verdict.error_type, card.decision.action) == ("hardware", "restart")
    assert watch(f"{STEPS}{XID}, caused by previous Xid 31\n").verdict.error_type != "hardware"


def test_a_driver_that_gave_no_context_is_the_cause_of_the_abort(watch: Watch) -> None:
    assert watch(f"{HFI}\n{CRASHED}").verdict.root_line == HFI
    assert watch(CRASHED).verdict.error_type == "native_crash"


def test_the_words_of_a_request_over_the_fabric_are_not_those_of_a_disk(watch: Watch) -> None:
    assert watch(f"{STEPS}{REDUCE}{POLL}\n").verdict.error_type == "communication"
    disk = "OSError: [Errno 5] Input/output error: '/toy/data/7.bin'"
    assert watch(f"{STEPS}{disk}\n").verdict.error_type == "storage"


def test_the_driver_of_the_card_says_more_than_the_guess_of_the_helper_process(watch: Watch) -> None:
    assert watch(f"{HCCP}\n{TSD}\n").verdict.root_line.strip() == TSD.strip()
    assert watch(f"{HCCP}\n").verdict.root_line == HCCP


@pytest.mark.parametrize(
    "refused",
    [
        "urllib.error.HTTPError: HTTP Error 507: Insufficient Storage",
        "toylib.StoreError: wheels.bin is not stored after 4 tries: HTTP 507: no space on toy7",
    ],
)
def test_a_server_that_has_no_room_is_full_storage(watch: Watch, refused: str) -> None:
    done = watch(f"{STEPS}{refused}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("storage", refused)
    assert done.decision.action == "hold"
    assert watch(f"{STEPS}{refused}\n{MORE}").verdict.state != "failed"
