"""What looking costs: an executor's CPU and its calls a second, while its scheduler lists many jobs.

The calls are counted from outside. On Ray a relay stands before a real head and adds ended jobs to its list.
On SLURM each tool on PATH notes its call first, and the ended jobs are real ones of an array.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil

from integration.up.conftest import Up
from midwatch.streams.services import ray_jobs
from processes import wait_for
from ray_lab.lab import RayLab
from ray_lab.world import variables
from slurm_lab.lab import Lab

RUNNING = 5
_TOOLS = ("squeue", "sacct", "scontrol", "sbatch", "scancel", "sinfo")


@dataclass(frozen=True)
class Cost:
    """`cpu`: seconds of the executor, with its children, a second. `calls`: of the scheduler, a second."""

    scheduler: str
    listed: int
    seconds: float
    cpu: float
    calls: float
    load: float


class _Relay:
    """Forwards to a head, adds `ended` clones of its first job to the list, and counts the calls."""

    def __init__(self, head: RayLab, ended: int) -> None:
        self.calls = 0
        relay = self

        class Handler(BaseHTTPRequestHandler):
            def _forward(self) -> None:
                relay.calls += 1
                size = int(self.headers.get("Content-Length") or 0)
                answer = ray_jobs.call(
                    head.head, self.command, self.path, self.rfile.read(size) if size else None, timeout=30
                )
                body = answer.body
                if answer.status == 200 and (self.command, self.path) == ("GET", "/api/jobs/"):
                    body = _with_ended(answer.json(), ended)
                with suppress(ConnectionError):  # who asked did not wait so long
                    self.send_response(answer.status or 502)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def __getattr__(self, name: str) -> Callable[[], None]:
                """`do_GET` and the like: every method is forwarded."""
                if name.startswith("do_"):
                    return self._forward
                raise AttributeError(name)

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def _with_ended(jobs: list[dict[str, Any]], count: int) -> bytes:
    clones = [
        {**job, "submission_id": f"ended-{number}", "status": "SUCCEEDED", "metadata": {}}
        for job in jobs[:1]
        for number in range(count)
    ]
    return json.dumps([*jobs, *clones]).encode()


@contextmanager
def _up(settings: Sequence[str], environment: Mapping[str, str]) -> Iterator[Up]:
    with tempfile.TemporaryDirectory(prefix="midwatch-cost-") as folder:
        up = Up(Path(folder), *(f"--set={each}" for each in settings), **environment)
        try:
            up.await_ready()
            yield up
        finally:
            up.stop()
            for pid in up.processes():
                os.kill(pid, signal.SIGKILL)


def _submitted(up: Up, *command: str) -> None:
    done = up.midwatch("run", "--", *command)
    assert done.returncode == 0, done.stderr


def _seen_running(up: Up) -> int:
    """Of how many jobs the executor has told that they run. Without a shipper such a job is `blind`."""
    jobs = json.loads(up.midwatch("jobs", "--json").stdout or "{}").get("jobs", ())
    return sum(job["state"] in ("running", "blind") for job in jobs)


def _measured(up: Up, scheduler: str, listed: int, seconds: float, calls: Callable[[], int]) -> Cost:
    """Let it look for so long. A shipper that also asks the head stands still meanwhile.

    It begins once the executor has told that all jobs run, and has looked again since then.
    """
    wait_for(lambda: _seen_running(up) == RUNNING, "the executor has seen that the jobs run", 120)
    executor = psutil.Process(up.pid_of("executor"))
    others = [
        each
        for each in psutil.Process(up.process.pid).children(recursive=True)
        if any(word.startswith("--ray=") for word in each.cmdline())
    ]
    for each in others:
        each.suspend()
    try:
        known = calls()
        wait_for(lambda: calls() > known, "the executor looks again", 120)
        before, cpu, began = calls(), sum(executor.cpu_times()[:4]), time.monotonic()
        time.sleep(seconds)  # the length of the measurement
        lasted = time.monotonic() - began
        used, asked = sum(executor.cpu_times()[:4]) - cpu, calls() - before
    finally:
        for each in others:
            with suppress(psutil.NoSuchProcess):
                each.resume()
    return Cost(scheduler, listed, lasted, used / lasted, asked / lasted, os.getloadavg()[0])


def on_ray(head: RayLab, listed: int, seconds: float, settings: Sequence[str] = ()) -> Cost:
    """Of an executor that watches five running jobs, beside ended ones of other people."""
    relay = _Relay(head, listed - RUNNING)
    try:
        with _up(settings, {**variables(head), "MIDWATCH_RAY__ADDRESS": relay.address}) as up:
            for _ in range(RUNNING):
                _submitted(up, "ray", "job", "submit", "--", "sleep", "3600")
            wait_for(lambda: _running(head) == RUNNING, "the jobs run", 120)
            return _measured(up, "Ray", listed, seconds, lambda: relay.calls)
    finally:
        relay.server.shutdown()
        head.clear()


def _running(head: RayLab) -> int:
    return sum(job["status"] == "RUNNING" for job in head.submissions())


def on_slurm(lab: Lab, listed: int, seconds: float, settings: Sequence[str] = ()) -> Cost:
    """Of an executor that watches five running jobs, beside the ended tasks of an array."""
    with tempfile.TemporaryDirectory(prefix="midwatch-tools-") as folder:
        notes = Path(folder, "calls")
        notes.touch()
        for tool in _TOOLS:
            if real := shutil.which(tool, path=lab.environment["PATH"]):
                wrapper = Path(folder, tool)
                wrapper.write_text(f'#!/bin/sh\necho {tool} >> {notes}\nexec {real} "$@"\n')
                wrapper.chmod(0o755)
        variables = {name: lab.environment[name] for name in ("SLURM_CONF", "PATH")}
        with _up(settings, {**variables, "PATH": f"{folder}:{variables['PATH']}"}) as up:
            script = Path(folder, "job.sh")
            script.write_text("#!/bin/sh\n#SBATCH --output=/dev/null\nexec sleep ${1:-0}\n")
            lab.run("sbatch", f"--array=1-{listed - RUNNING}", "--output=/dev/null", str(script))
            wait_for(lambda: not lab.run("squeue", "-h", "-t", "PD,R").stdout.strip(), "the array ended", 300)
            for _ in range(RUNNING):
                _submitted(up, "sbatch", str(script), "3600")
            return _measured(up, "SLURM", listed, seconds, lambda: notes.read_text().count("\n"))
