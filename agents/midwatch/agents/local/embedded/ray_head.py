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

_READY_S = 90.0
_POLL_S = 0.2
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
        """Starts the head and returns once its Jobs API answers. Its log is `log`.

        Raises:
            NoRay: there is no program `ray` on PATH.
            ServerFailed: it does not start, or does not answer in time.
        """
        program = shutil.which("ray")
        if program is None:
            raise NoRay(
                "no program `ray` was found",
                where="PATH",
                remedy='install it (pip install "ray[default]"), or name your head: --set=ray.address=URL',
            )
        ports: list[int] = []
        while len(ports) < len(_PORTS):
            ports.append(free_port(ports))
        # A short name: a socket's path may have 107 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="mw-ray-"))
        self.head = RayHead(f"http://{LOOPBACK}:{ports[1]}", secrets.token_hex(16))
        options = [f"--{name}={port}" for name, port in zip(_PORTS, ports, strict=True)]
        command = [program, "start", "--head", "--block", f"--node-ip-address={LOOPBACK}", *options]
        command += [f"--dashboard-host={LOOPBACK}", "--num-cpus=4", f"--num-gpus={gpus}"]
        command += [f"--temp-dir={self._folder}", "--object-store-memory=80000000", "--disable-usage-stats"]
        secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.head.token}
        before = {name: os.environ.get(name) for name in secret}
        os.environ.update(secret)  # a child inherits them, and a command line would show the token
        try:
            self._child = Child("the Ray head", command, directory=self._folder, log=log)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        self._wait(log)

    def stop(self) -> None:
        """Ends the head and removes its folder."""
        self._child.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait(self, log: Path) -> None:
        deadline = time.monotonic() + _READY_S
        while call(self.head, "GET", "/api/jobs/", timeout=2).status != 200:
            if self._child.exit_status is not None or time.monotonic() > deadline:
                self.stop()
                raise ServerFailed("the Ray head did not come up", where=str(log), remedy="the log says why")
            time.sleep(_POLL_S)
