"""Starts the ranks of a drill on this host and reports their end as torchrun does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

POLL_S = 0.02
TERM_GRACE_S = 5.0
TERMINATED = 128 + signal.SIGTERM


def launch(
    script: Path, ranks: int, log_dir: Path | None, *, meeting: Path, patience_s: float, quiet: bool
) -> int:
    """Runs `script` with this process's arguments as `ranks` processes. Returns one exit code for all.

    Without a `log_dir` all ranks print to our own output. They meet at the socket `meeting`.

    After the first failure the others have `patience_s` to print their errors and end by themselves. Then
    they get SIGTERM, then SIGKILL. Exit code 0: all ended with 0. 143: this process got SIGTERM. Else 1.
    """
    files: list[Path] = []
    if log_dir is not None:
        log_dir.mkdir(parents=True, exist_ok=True)
        files = list(log_dir.glob("rank_*.log"))
    variables = {
        "WORLD_SIZE": str(ranks),
        "MIDWATCH_DRILL_MEETING": str(meeting),
        "MIDWATCH_DRILL_PARENT": str(os.getpid()),
        "MIDWATCH_DRILL_LOGGED": json.dumps({file.name: file.stat().st_size for file in files}),
    }
    processes = [_start(script, rank, log_dir, variables) for rank in range(ranks)]
    terminations: list[float] = []

    def on_term(*_: object) -> None:
        terminations.append(time.monotonic())
        _signal_all(processes, signal.SIGTERM)

    signal.signal(signal.SIGTERM, on_term)
    first: subprocess.Popen[bytes] | None = None
    failed_at, signalled_at = 0.0, 0.0
    while any(process.poll() is None for process in processes):
        now = time.monotonic()
        if first is None:
            first = next((process for process in processes if process.poll()), None)
            failed_at = now
        if signalled_at == 0.0 and ((first and now > failed_at + patience_s) or terminations):
            signalled_at = now
            if not terminations:  # else the handler did it: a rank that saves must not get a second signal
                if not quiet:
                    _warn_survivors(processes)
                _signal_all(processes, signal.SIGTERM)
        if signalled_at and now > signalled_at + TERM_GRACE_S:
            _signal_all(processes, signal.SIGKILL)
        time.sleep(POLL_S)
    if all(process.returncode == 0 for process in processes):
        return 0
    if terminations:
        return TERMINATED
    if not quiet:
        first = first or next(process for process in processes if process.returncode)
        _summarise(processes, first, script)
    return 1


def _start(
    script: Path, rank: int, log_dir: Path | None, variables: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    environment = os.environ | variables | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    argv = [sys.executable, str(script), *sys.argv[1:]]
    if log_dir is None:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=environment)
    with (log_dir / f"rank_{rank}.log").open("ab") as log:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
        )


def _signal_all(processes: list[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(number)


def _warn_survivors(processes: list[subprocess.Popen[bytes]]) -> None:
    clock = datetime.now().strftime("%m%d %H:%M:%S.%f")
    place = f"{os.getpid()} torch/distributed/elastic/multiprocessing/api.py:900"
    for process in processes:
        if process.poll() is None:
            text = f"W{clock} {place}] Sending process {process.pid} closing signal SIGTERM"
            print(text, file=sys.stderr, flush=True)


def _summarise(
    processes: list[subprocess.Popen[bytes]], first: subprocess.Popen[bytes], script: Path
) -> None:
    rank, code = processes.index(first), first.returncode
    clock = datetime.now().strftime("%m%d %H:%M:%S.%f")
    place = f"{os.getpid()} torch/distributed/elastic/multiprocessing/api.py:874"
    head = f"E{clock} {place}] failed (exitcode: {code}) local_rank: {rank} (pid: {first.pid})"
    cause = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    if code < 0:
        cause = f"Signal {-code} ({signal.Signals(-code).name}) received by PID {first.pid}"
    rule = "=" * 60
    print(
        f"{head} of binary: {sys.executable}\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        f"{rule}\n{script.name} FAILED\n{'-' * 60}\nRoot Cause (first observed failure):\n[0]:\n"
        f"  time      : {datetime.now():%Y-%m-%d_%H:%M:%S}\n"
        f"  host      : {socket.gethostname()}\n"
        f"  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: {first.pid})\n"
        "  error_file: <N/A>\n"
        f"  traceback : {cause}\n{rule}",
        file=sys.stderr,
        flush=True,
    )
