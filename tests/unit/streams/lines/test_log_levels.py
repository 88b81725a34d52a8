"""What calls itself a warning or less is quiet; what calls itself an error, or nothing, is loud."""

from __future__ import annotations

import pytest

from midwatch.streams.lines.log_levels import is_quiet

QUIET = [
    "2026-03-02 11:00:00,000 INFO toy.py:3 -- started",
    "[2026-03-02 11:00:00,000] [WARNING] [launch.py:1] odd",
    "[toylib][warning] the tracker failed",
    "警告: Failed to load the toy",
    "WARNUNG: Failed to load the toy",
    "[2026-03-02 11:00:00.001] [toy] [info] Error rate 0.1",
    "W0302 11:00:00.000000 77 torch/distributed/run.py:3] odd",
    "[rank3]:[W302 11:00:00.1 socket.cpp:3] odd",
    "[rank3]:I0302 11:00:00.000000 77 torch/toy/agent.py:3] Environment variable 'TOY' not found",
    "[rank3]:W0302 11:00:00.000000 77 torch/toy/utils.py:3] [7/0] Found nan in toy",
    "[NeMo D 2026-03-02 11:00:00 toy:3] odd",
    'time="2026-03-02T11:00:00Z" level=warning msg="report failed: dial tcp: odd" file="toy.go:3"',
    'level=info msg="the last ERROR was odd"',
    '{"time":"2026-03-02T11:00:00Z","level":"INFO","msg":"stream: closed","id":"toy"}',
    '{"ts": 77, "levelname": "warning", "msg": "the last ERROR was odd"}',
    "slurmstepd: debug:  Could not open stdout file '/toy': odd",
    "srun: debug2: error: odd",
    "libfabric:77:1714000000::efa:ep_ctrl:toy_open():3<info> RuntimeError: odd",
    "[1714000000.118290] [n4:77  :0]     toy.c:9    UCX  DIAG  failed: odd",
    "[W socket.cpp:558] [c10d] odd",
    "2026-03-02 11:00:00.1: W tensorflow/core/toy.cc:3] odd",
    "/opt/toy.py:3: UserWarning: CUDA initialization: odd",
    "n4:88:90 [0] NCCL INFO odd",
    "(Trainer pid=77) wandb: ERROR upload failed",
    "E0302 11:00:00.1 77 torch/_inductor/select_algorithm.py:9] [7/0] OutOfResources: odd",
    '{"role": "user", "content": "I get this: RuntimeError: odd"}',
    "  [{'id': 3, 'prompt': 'why ERROR: odd', 'completion': 'so'}]",
    "Batch size 64 failed with: CUDA out of memory, trying batch size 32",
    "2026-03-02 11:00:00,000 ERROR Attempt 2 failed: read timed out. Retrying in 4 s",
    "[skip] Failed to load toy.ckpt: RuntimeError: odd",
    "12:00:01 Skipping part 7: RuntimeError: odd",
    "OSError: image 7 is truncated, skipping it",
    "2026-03-02 11:00:00,000 ERROR    toy:20 skipping sample 7: ToyImageError: odd (1 so far)",
    "ERROR toy: could not load /toy/7.pt, trying the one before: RuntimeError: odd",
    "ERROR:toy:Skipping corrupt file /toy/7.jpg: RuntimeError: odd",
    "requests.exceptions.ConnectionError: no answer, using the cached toy",
    "[rank3]: Error at toy 7: CUDA out of memory. Tried to allocate 2.00 GiB. Skipping.",
    "[rank3]: \tIgnoring dimension mismatch between two toys as requested: RuntimeError: odd",
    "[2026-03-02 11:00:00 TP3] Skipping toy: import failed: RuntimeError: odd",
    "ERROR:toy:No toy_engine was found! Will fall back to toy.save. Details: odd",
    "[11:00:00] ERROR Error reaping toy 7. Will retry on next round.",
    "ERROR toy: could not cache the toy. Will ignore error and continue. Error: odd",
    "Error in handling toy.tar. Exception odd raised. Continuing to next file",
    "ERROR:toy:Timeout waiting for the toy after 9 s. Proceeding anyway as best effort.",
    "ERROR toy:7: unable to make the key, skipping the cache: RuntimeError: odd",
    "RuntimeError: odd. The toy will be skipped (if it is small)",
    "E0302 11:00:00.000000 77 cuda_timer.cc:9] Delay kernel timed out: odd",
    "[ERROR:6@77.25] global loadsave.cpp:478 imread_ imread_('/toy/7.tif'): can't read data: error: odd",
    "2026-03-02 11:00:00,000 - INFO - the toy's tool said: slurmstepd: error: odd",
    "2026-03-02 11:00:00,000 - toy - INFO - RuntimeError: odd",
    "INFO:toy:W0302 11:00:00.000000 77 toy.cc:3] error: odd",
    "[INFO] srun: debug2: error: odd",
]
LOUD = [
    "toy.errors.ToyError: it must return a toy or None (where the step will be skipped).",
    "RuntimeError: odd WARNING inside",
    "RuntimeError: no port is free after trying the next 7",
    "ValueError: skipping samples is not what this toy does",
    'time="2026-03-02T11:00:00Z" level=error msg="odd INFO"',
    '{"ts": 77, "level": "error", "msg": "odd INFO"}',
    '{"ts": 77, "log_level": "info", "msg": "ERROR: odd"}',
    '{"severity": "INFO", "textPayload": "RuntimeError: odd"}',
    "toy.py --log_level=info --level=warning RuntimeError: odd",
    "[2026-03-02 11:00:00.001] [toy] [error] odd WARNING",
    "RuntimeError: toy[info] is odd",
    "2026-03-02 11:00:00,000 ERROR toy.py:3 -- INFO follows",
    "[rank3]:[E302 11:00:00.1 ProcessGroupNCCL.cpp:3] odd",
    "F0302 11:00:00.000000 77 node_manager.cc:3] Check failed: INFO",
    "n4:88:90 [0] NCCL WARN odd",
    "Mar  2 11:00:00 n4 kernel: NVRM: Xid (PCI:0000:1a:00): 79",
    "slurmstepd: error: odd WARNING",
    '{"message": "RuntimeError: odd", "extraInfo": {"py_callstack": "File"}}',
    "E0302 11:00:00.1 77 torch/_inductor/codecache.py:9] odd",
    "INFO:tensorflow:Error reported to Coordinator: odd",
    "I0302 11:00:00.000000 77 coordinator.py:219] Error reported to Coordinator: odd",
    "ConnectionError: Max retries exceeded, gave up retrying",
    "RuntimeError: skipped layers must be even",
    "skipper: RuntimeError: odd",
    "RuntimeError: the toy fell while ignoring its wheels",
    "[rank3]:E0302 11:00:00.000000 77 torch/toy/agent.py:3] INFO odd",
    "slurmstepd: error: debug: odd",
    "libfabric:77:1714000000::efa:ep_ctrl:toy_open():3<warn> odd: <info>",
    "RuntimeError: odd. Skipping is not allowed here",
    "RuntimeError: odd. Will not retry",
    "ERROR toy: no answer. Retrying is switched off",
    "RuntimeError: odd. Set toy=1 to continue anyway",
    "ERROR toy: not proceeding with a broken toy: RuntimeError: odd",
    "2026-03-02 11:00:00,000 - INFO - slurmstepd: error: odd",
    "2026-03-02 11:00:00.123 | INFO     | toy:out:4 - [rank3]:[E302 11:00:00.1 ProcessGroupNCCL.cpp:3] odd",
    "[2026-03-02 11:00:00,123][toy][INFO] - (Toy pid=77) F0302 11:00:00.000000 77 toy.cc:3] odd",
    "INFO:toy:n4:88:90 [0] NCCL WARN odd",
    "INFO:toy:[ 126748.505383] NVRM: odd",
    "[INFO] /var/toy/script: line 9:    77 Killed",
]


@pytest.mark.parametrize("line", QUIET)
def test_quiet(line: str) -> None:
    assert is_quiet(line.encode())


@pytest.mark.parametrize("line", LOUD)
def test_loud(line: str) -> None:
    assert not is_quiet(line.encode())
