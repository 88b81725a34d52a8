"""A Ray head on this machine for the demo, with as many GPUs as Ray is told that there are."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path

from midwatch.agents.local.embedded.errors import NoRay, ServerFailed
from midwatch.agents.local.embedded.process.child import Child
from midwatch.agents.local.embedded.process.ports import LOOPBACK, free_port
from midwatch.streams.services.ray_jobs import RayHead, call

_READY_S = 150.0
_STARTS = 3
"""Ray's own start gives up after 30 s, which a busy machine can need. The next one finds files in memory."""
_POLL_S = 0.2
_OK = 200
_PORTS = (
    "port",
    "dashboard-port",
    "dashboard-agent-listen-port",
    "dashboard-agent-grpc-port",
    "ray-client-server-port",
    "metrics-export-port",
)


class EmbeddedRay:
    """One head. It ends when this process ends, even by kill -9."""

    def __init__(self, log: Path, *, gpus: int = 8) -> None:
        """Starts the head and returns once it takes jobs. Its log is `log`.

        Raises:
            NoRay: there is no program `ray` on PATH.
            ServerFailed: it does not start, or is not ready in time.
        """
        program = shutil.which("ray")
        if program is None:
            raise NoRay(
                "no program `ray` was found",
                where="PATH",
                remedy='install it (pip install "ray[default]"), or name your head: --set=ray.address=URL',
            )
        self._log = log
        # A short name: a socket's path may have 107 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="mw-ray-"))
        deadline = time.monotonic() + _READY_S
        for _ in range(_STARTS):
            self._start(program, gpus)
            if self._is_ready(deadline):
                return
            self._child.stop()
        self.stop()
        raise ServerFailed("the Ray head did not come up", where=str(log), remedy="the log says why")

    def check(self) -> None:
        """Raises ServerFailed if the head has ended since."""
        if self._child.exit_status is not None:
            raise ServerFailed(
                f"the Ray head ended, with exit code {self._child.exit_status}",
                where=str(self._log),
                remedy="the log says why; on a busy machine try again",
            )

    def stop(self) -> None:
        """Ends the head and removes its folder."""
        self._child.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, program: str, gpus: int) -> None:
        ports: list[int] = []
        while len(ports) < len(_PORTS):
            ports.append(free_port(ports))
        self.head = RayHead(f"http://{LOOPBACK}:{ports[1]}", secrets.token_hex(16))
        options = [f"--{name}={port}" for name, port in zip(_PORTS, ports, strict=True)]
        command = [program, "start", "--head", "--block", f"--node-ip-address={LOOPBACK}", *options]
        # Ray starts as many idle workers as there are CPUs, and the demo's driver needs none of them.
        command += [f"--dashboard-host={LOOPBACK}", "--num-cpus=1", f"--num-gpus={gpus}"]
        command += [f"--temp-dir={self._folder}", "--object-store-memory=80000000", "--disable-usage-stats"]
        # A child inherits the token, which a command line would show. By default Ray's workers have the
        # niceness 15: beside the watch on a busy machine they would hardly run.
        ours = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.head.token, "RAY_worker_niceness": "0"}
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            self._child = Child("the Ray head", command, directory=self._folder, log=self._log)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    def _is_ready(self, deadline: float) -> bool:
        """Waits until it takes jobs; False if it ended before, or is late."""
        while self._child.exit_status is None and time.monotonic() < deadline:
            if self._takes_jobs():
                return True
            time.sleep(_POLL_S)
        return False

    def _takes_jobs(self) -> bool:
        """Whether its node has joined: the dashboard answers before, and dies with a node that never does."""
        if call(self.head, "GET", "/api/jobs/", timeout=2).status != _OK:
            return False
        try:
            nodes = call(self.head, "GET", "/api/v0/nodes", timeout=5).json()["data"]["result"]["result"]
            return any(node["state"] == "ALIVE" for node in nodes)
        except (ValueError, KeyError, TypeError):
            return False
