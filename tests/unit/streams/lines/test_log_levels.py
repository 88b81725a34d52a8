"""What calls itself a warning or less is quiet; what calls itself an error, or nothing, is loud."""

from __future__ import annotations

import pytest

from midwatch.streams.lines.log_levels import is_quiet, was_left_out

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
    "2026-03-02 11:00:00,000 ERROR   wandb-upload_3:4188 [internal_api.py:toy():7] odd: Connection aborted.",
    "panic: stream_init: failed to fetch credentials: odd",
    "System.Management.Automation.RemoteException",
    "System.Management.Automation.RemoteException\r",
    "E0302 11:00:00.1 77 torch/_inductor/select_algorithm.py:9] [7/0] OutOfResources: odd",
    '{"role": "user", "content": "I get this: RuntimeError: odd"}',
    "  [{'id': 3, 'prompt': 'why ERROR: odd', 'completion': 'so'}]",
    "{'Toys': [{'Question': 'the device has been lost: odd'}]}",
    "Question: why is the device lost? RuntimeError: odd",
    "Doesn't fit on GPU. CUDA out of memory: odd",
    "Batch size 64 failed with: CUDA out of memory, trying batch size 32",
    "2026-03-02 11:00:00,000 ERROR Attempt 2 failed: read timed out. Retrying in 4 s",
    "n4:77:88 [5] ibvwrap.c:94 NCCL WARN Call to ibv_open_device failed",
    "n4:77:88 [5] toy.c:7 NCCL WARN NET/IB : Unable to open device mlx5_an0",
    "2026-03-02 11:00:00,000 ERROR toys: metrics push failed: Max retries exceeded",
    "ERROR:toys:failed to push 3 metrics to http://127.0.0.1:77: odd",
    "ERROR toys: cannot decode toy.jpg, substituting next sample: odd",
    "2026-03-02 11:00:00 toys ERROR toy is not usable here, taking the other toy instead: odd",
    "ERROR toys: evaluation exited with code 1 (1 so far), training goes on: odd",
    "[skip] Failed to load toy.ckpt: RuntimeError: odd",
    "[W 2026-03-02 11:00:00,118] Trial 7 failed with parameters: {} because of: RuntimeError('odd').",
    "[W 260302 11:00:00 toy:7] RuntimeError: odd",
    "2026-03-02 11:00:00,000 ERROR toys: could not decode toy.png, sample skipped: RuntimeError: odd",
    "=== attempt 1 failed with exit code 1: odd, restarting in 3s",
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
    "ERROR toy: the picture failed, going on without it: RuntimeError: odd",
    "RuntimeError: odd, so the toy goes on",
    "ERROR toy: RuntimeError: odd; continuing",
    "toy.sh: line 7:    77 Killed                  tail -F /toy/odd.log",
    "toy.sh: line 7:    77 Terminated              /usr/bin/nvidia-smi --loop 7",
    "[ERROR] toy: Failed to start web server: [Errno 98] odd",
    "ERROR toy could not open the metrics port: odd",
    "2026-03-02 11:00:00,000 - INFO - the toy's tool said: slurmstepd: error: odd",
    "2026-03-02 11:00:00,000 - toy - INFO - RuntimeError: odd",
    "INFO:toy:W0302 11:00:00.000000 77 toy.cc:3] error: odd",
    "[INFO] srun: debug2: error: odd",
    "(APIServer pid=77) ERROR 03-02 11:00:00 [toy_tool_parser.py:7] json.decoder.JSONDecodeError: odd",
    "  toy feed 7: close failed: ConnectionResetError(104, 'Connection reset by peer')",
    "ERROR toy could not close the feed: [Errno 32] Broken pipe",
    "E0302 11:00:00.000000 77 gpu_timer.cc:9] Delay kernel timed out: odd",
    "2026-03-02 11:00:00.1: E toy/cupti_tracer.cc:77] function toy->Subscribe(&odd)failed with error odd",
    "Unable to init server: Could not connect: Connection refused",
    "E0302 11:00:00.000000 77 init.cc:9] grpc_wait_for_shutdown_with_timeout() timed out.",
    "COMET ERROR: odd upload failed",
    '{"time":"2026-03-02T11:00:00.123+01:00","level":"ERROR","msg":"sender: odd: timed out"}',
    '{"time":"2026-03-02T11:00:00.1Z","level":"ERROR","msg":"runfiles: odd returned error: api: failed"}',
    '{"time":"2026-03-02T11:00:00.1Z","level":"ERROR","msg":"monitor: gpu: timeout waiting: odd"}',
    "/usr/libexec/git-core/git-remote-https: symbol lookup error: /lib64/libtoy.so.2: undefined symbol: odd",
    "case large=True: skipped due to OOM (B=7) [CUDA out of memory. Tried to allocate 77.00 GiB. odd",
    "2026-03-02 11:00:00.1: E toy/core/grappler/optimizers/toy_optimizer.cc:7] the sort failed: odd",
    "mkdir -p failed for path /toy/.config/matplotlib: [Errno 13] Permission denied: '/toy'",
    "(APIServer pid=7) ERROR 03-02 11:00:00 [repo_utils.py:7] Error retrieving safetensors: odd",
    "Error: connect ENOENT /tmp/vscode-git-aa11bb22.sock",
    "      NumbaTypeError: odd",
    "slurmstepd: error: poll(): Bad address",
    "slurmstepd: error: common_file_write_uint32s: write pid 77 to /sys/fs/cgroup/cgroup.procs failed: odd",
    "slurmstepd: error: _cgroup_procs_check: failed on path (null)/cgroup.procs: No such file or directory",
    "slurmstepd: error: Cannot write to cgroup.procs for (null)",
    "slurmstepd: error: Unable to move pid 77 to init root cgroup /sys/fs/cgroup",
    "slurmstepd: error: error unlocking cgroup '/sys/fs/cgroup/toy.scope' : Bad file descriptor",
    "0090:err:toy:nodrv_Create odd: the process failed to start.",
    "gzip: stdout: Broken pipe",
    "xz: (stdout): Write error: Broken pipe",
    "the toy loss is nan at 7, skip this batch",
    "2026/03/02 11:00:00 ERROR mlflow.utils.async_logging.toy: Failed to log run data: Exception: odd",
    "[2026-03-02 11:00:00,001 W 77 78] toy.cc:9: [1] Export metrics to agent failed: RpcError: odd",
    "Failed to load checkpoint: there is none in toys/; starting from scratch",
    "ERROR toy: cannot decode '/toy/7.jpg', skipping",
    "An error occurred while trying to fetch toy: Error no file named toy.safetensors found in directory /x",
]
LOUD = [
    "[ERROR] toy: Failed to start server: [Errno 98] odd",
    "toy.errors.ToyError: it must return a toy or None (where the step will be skipped).",
    "RuntimeError: odd WARNING inside",
    "NumbaTypeError: odd",
    "2026-03-02 11:00:00.1: E toy/core/grappler/toy_graph.cc:7] the sort failed: odd",
    "Error: connect ENOENT /tmp/toy-git-aa11bb22.sock",
    "RuntimeError: no port is free after trying the next 7",
    "ValueError: skipping samples is not what this toy does",
    "RuntimeError: training from scratch needs a toy",
    "Unable to init server: odd",
    "2026/03/02 11:00:00 ERROR mlflow.projects: odd",
    '{"time":"2026-03-02T11:00:00.123+01:00","level":"ERROR","msg":"trainer: odd: timed out"}',
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
    "toy.sh: line 7:    77 Killed                  python tail.py",
    "RuntimeError: what is going on with the toy",
    "RuntimeError: odd, continuing is not allowed",
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
    "ERROR 03-02 11:00:00 [argument_parser.py:7] RuntimeError: odd",
    "ERROR toy could not close the file: [Errno 28] No space left on device",
    "OSError: Error no file named toy.safetensors found in directory /toy.",
    "An error occurred while trying to fetch toy/unet: odd",
    '{"time":"2026-03-02T11:00:00.1Z","level":"ERROR","msg":"trainer: odd: timed out"}',
    "/toy/bin/train: symbol lookup error: /lib64/libtoy.so.2: undefined symbol: odd",
]


@pytest.mark.parametrize("line", QUIET)
def test_quiet(line: str) -> None:
    assert is_quiet(line.encode())


@pytest.mark.parametrize("line", LOUD)
def test_loud(line: str) -> None:
    assert not is_quiet(line.encode())


BROKE_OFF = "Error while downloading from https://toy/7: HTTPSConnectionPool(host='toy'): Read timed out."
IN_HEADERS = "HTTP request sent, awaiting response... Read error (Connection reset by peer) in headers."
CLOSED = "Cannot access gated repo for url https://toy/toys/closed/resolve/main/toy.json."
UNFIT = "[toy] Dimension mismatch: the chest holds 7 paints, the shelf 77"
NO_PTXAS = (
    "2026-03-02 11:52:40.118290: W toy.cc:77] INTERNAL: ptxas exited with non-zero error code -1, output:"
)
FULL = "slurmstepd: error: Exceeded step memory limit at some point."


@pytest.mark.parametrize(
    ("failure", "next_line"),
    [
        (BROKE_OFF, "Trying to resume download..."),
        (CLOSED, "Please log in. - silently ignoring the lookup for the file toy.json in toys/closed."),
        (IN_HEADERS, "Retrying."),
        (UNFIT, "2026-03-02 11:52:40,118 - toys - INFO - Using fallback paint"),
        (UNFIT, "[toy] Falling back to the paint of last year"),
        (IN_HEADERS, "the toy is away, retrying..."),
        (UNFIT, "[toy] Starting from scratch, the old paint is put away"),
        (NO_PTXAS, "Relying on driver to perform ptx compilation."),
        (FULL, "slurmstepd: error: This may or may not result in some failure. A toy has its own cgroup."),
    ],
)
def test_a_failure_was_got_over_where_the_next_line_says_so(failure: str, next_line: str) -> None:
    assert was_left_out(f"{failure}\n{next_line}\n".encode(), len(failure))


@pytest.mark.parametrize(
    ("failure", "next_line"),
    [
        (BROKE_OFF, "The download cannot be resumed"),
        (CLOSED, "Please log in. The lookup for the file toy.json ended."),
        (IN_HEADERS, "Giving up."),
        (UNFIT, "[toy] no fallback is left"),
        (IN_HEADERS, "Retrying failed"),
        (UNFIT, "[toy] the shelf was built from scratch"),
        (NO_PTXAS, "ptxas fatal: no toys"),
        (FULL, "slurmstepd: error: the toy is killed"),
    ],
)
def test_a_failure_counts_where_the_next_line_says_no_such_thing(failure: str, next_line: str) -> None:
    assert not was_left_out(f"{failure}\n{next_line}\n".encode(), len(failure))
