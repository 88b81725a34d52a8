"""A real `midwatch up` in a directory of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded_stack import variables_of
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.settings.file import load_settings
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.readiness import is_ready
from processes import alive, wait_for, working_in

READY = 90.0
PROCESSES = ("match", "detect", "decide", "executor")


class Up:
    """One run of `midwatch up` and what can be seen of it from outside."""

    def __init__(self, directory: Path, *options: str, **variables: str) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.output = directory / "output"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MIDWATCH_")}
        self.environment = clean | {"HOME": str(directory), **_kept()} | variables
        self._command = [sys.executable, "-m", "midwatch", "up", f"--state-directory={self.state}", *options]
        self.process = self._begin()

    def _begin(self) -> subprocess.Popen[bytes]:
        with self.output.open("ab") as output:
            return subprocess.Popen(
                self._command,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=self.environment,
            )

    def kill_and_begin_again(self) -> None:
        """kill -9, and another one in the same directory at once."""
        self.process.kill()
        self.process.wait()
        self.process = self._begin()

    @property
    def said(self) -> str:
        return self.output.read_text()

    def await_ready(self) -> None:
        def ready() -> bool:
            assert self.process.poll() is None, self.said
            return is_ready(self.state, "up", self.process.pid)

        wait_for(ready, "up is ready", READY)

    def pid_of(self, name: str) -> int:
        """Of a process that says that it is ready; 0 if none does."""
        try:
            pid = int(json.loads((self.state / f"run/{name}.ready").read_text())["pid"])
        except FileNotFoundError:
            return 0
        return pid if alive(pid) else 0

    def midwatch(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another command of the same user, which knows the state directory and nothing else."""
        return subprocess.run(
            [sys.executable, "-m", "midwatch", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.directory,
            env=self.environment | {"MIDWATCH_STATE_DIRECTORY": str(self.state)},
        )

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)

    def processes(self) -> list[int]:
        """Everything that runs in its directory: servers, agents, supervisors."""
        return [pid for pid in working_in(self.directory) if pid != self.process.pid]


def _kept() -> dict[str, str]:
    """The cache of jars is the user's; a new HOME must not make every test download."""
    from midwatch.agents.local.embedded.stack import default_cache

    return {"MIDWATCH_CACHE": str(default_cache(os.environ))}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One that runs with Kafka and Redis of its own, for all tests of a file."""
    one = Up(tmp_path_factory.mktemp("up"))
    try:
        one.await_ready()
        yield one
    finally:
        one.stop()


def settings_of(stack: Endpoints, directory: Path, **others: str) -> Settings:
    """Settings that name the session's services; `others` as variables without their prefix."""
    given = variables_of(stack, **others)
    environment = {"MIDWATCH_STATE_DIRECTORY": str(directory), **given}
    return load_settings(environment={k: v for k, v in environment.items() if v}, here=directory)
