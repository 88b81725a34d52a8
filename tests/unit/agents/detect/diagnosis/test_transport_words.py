"""What transports, cards of other makers and the kernel print when they give up; each beside its kin."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "Epoch 3 step 40/900 loss 2.31\nEpoch 3 step 50/900 loss 2.30\n"
MORE = "Epoch 3 step 60/900 loss 2.29\nEpoch 3 step 70/900 loss 2.29\nEpoch 3 step 80/900 loss 2.28\n"
CCL = "2026:03:02-11:52:40:(   77) |CCL_"
HCCL = "[rank3]: EI0012: [PID: 77] SDMA memory copy task exception occurred. Remote rank: [3]."
TAKEN = "EJ0003: Failed to bind the IP port. Reason: The IP address and port have been bound already."
FULL = "EI0007: Failed to allocate resource[Toy] with info [size:7]. Reason: Memory resources are exhausted."
VERSIONS = "EI0008: The HCCL versions are inconsistent: tag [toy], local_version [8], remote_version [7]"
VECTOR = "The error from device(chipId:0, dieId:0), serial number is 5, there is an aivec error exception"
GRPC = 'E toy_session.cc:7] Cleanup partition error: Unavailable: {"created":"@1.7","description":"EOF"}'
XGBOOST = "xgboost.core.XGBoostError: [11:52:40] /workspace/src/"
HANDLER = "received by PID 77 (TID 0x7f2cd1) from PID 0; stack trace: ***"
SPAWN = (
    "[proxy:1:1@n2] HYD_spawn (libhydra/toy.c:77): execvp error on file /opt/toy (No such file or directory)"
)
BAD_END = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   KILLED BY SIGNAL: 9 (Killed)"
LOST = "RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)"
XPU_FULL = "RuntimeError: Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES)"
OOPS = "[   77.000001] BUG: unable to handle page fault for address: 0000000000000010"
UCX = "[n1:77   :0:78]    ud_ep.c:278  Fatal: UD endpoint 0x7f to <no debug data>: unhandled timeout error"
CARD = "libfabric:77:17::cxi:core:cxip_toy():7<warn> n1: cxip_alloc_toy failed: -28, No space left on device"
SPAWNED = "[n1:mpispawn_0][child_handler] MPI process (rank: 3, pid: 77) terminated with signal"
DIED = "[n1:mpispawn_0][readline] Unexpected End-Of-File on file descriptor 7. MPI process died?"
FAISS = "Faiss assertion 'err__ == toySuccess' failed in void faiss::gpu::toy() at toy.cu:77"
LIGHTGBM = "[LightGBM] [Warning] Connecting to rank 3 failed, waiting for"


@pytest.mark.parametrize(
    ("last", "error_type", "action"),
    [
        (f"{CCL}ERROR| toy_ofi.cpp:277 wait: condition status == TOY failed", "communication", "hold"),
        (HCCL, "communication", "hold"),
        (TAKEN, "port_in_use", "hold"),
        (FULL, "oom", "stop"),
        (VERSIONS, "config", "stop"),
        (VECTOR, "torch", "stop"),
        (GRPC, "communication", "restart"),
        (f"{XGBOOST}collective/result.cc:77: Failed to connect to 10.0.0.9:9091", "communication", "hold"),
        (f"{XGBOOST}learner.cc:77: the toy is empty", "exception", "hold"),
        ("connect to (failed): [10.0.0.9]", "rendezvous", "restart"),
        ("terminate called after throwing an instance of 'gloo::IoException'", "communication", "hold"),
        ("terminate called after throwing an instance of 'toy::IoException'", "exception", "hold"),
        (f"*** SIGSEGV (@0x0) {HANDLER}", "native_crash", "stop"),
        (f"{SPAWN}\n{BAD_END}", "config", "stop"),
        (BAD_END, "host_oom", "stop"),
        (LOST, "hardware", "hold"),
        (XPU_FULL, "oom", "stop"),
        ("Failure: NRT_RESOURCE in nrt_tensor_allocate", "oom", "stop"),
        ("rocBLAS error: Could not initialize Tensile host: No devices found", "torch", "stop"),
        (OOPS, "hardware", "restart"),
        (UCX, "communication", "restart"),
        (CARD, "communication", "hold"),
        (f"{LIGHTGBM} 13168 milliseconds", "rendezvous", "hold"),
        (f"{DIED}\n{SPAWNED} 9 -> abort job", "host_oom", "stop"),
        (f"{DIED}\n{SPAWNED} 11 -> abort job", "native_crash", "stop"),
        (DIED, "communication", "hold"),
        ("No components were able to be opened in the pml framework.", "config", "stop"),
        ("[rank3]:[F302 11:52:40.118290260 toy.cpp:77] the toy has no wheels", "exception", "stop"),
        (FAISS, "exception", "stop"),
    ],
)
def test_a_transport_or_card_that_gave_up_is_the_cause(
    watch: Watch, last: str, error_type: str, action: str
) -> None:
    done = watch(f"{STEPS}{last}\n")
    assert (done.verdict.error_type, done.decision.action) == (error_type, action)


@pytest.mark.parametrize(
    "line",
    [
        f"{CCL}WARN| value of CCL_TOY changed to be 7 (default:8)",
        "rocBLAS warning: hipBlasLT failed, falling back to tensile.",
        "MIOpen(HIP): Warning [Toy] Missing system database file: toy.kdb",
        "retry connect to ip(retry time 2): [10.0.0.9]",
        f"{LIGHTGBM} 2746 milliseconds",
        "[rank3]:[W302 11:52:40.118290260 toy.cpp:77] the toy has no wheels",
        "[n1:mpispawn_0][child_handler] MPI process (rank: 3, pid: 77) exited with status 0",
        "[1772449200.1] [n1:77   :0]   toy.c:7    UCX  WARN  unused environment variable: UCX_TOY",
        "MIOpen Error: /toy/src/toy_db.cpp:220: Internal error while accessing the toy: locking protocol",
    ],
)
def test_what_a_transport_prints_and_works_on_after_is_no_failure(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n{MORE}").verdict.state != "failed"
