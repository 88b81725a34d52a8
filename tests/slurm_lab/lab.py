"""A real SLURM on this machine, in a directory of its own: munge, slurmctld and a few slurmd, on free ports.

Its daemons run in the foreground as our children, so that a test can freeze, kill and restart each, and
they die with the test process. Jobs outlive their daemons: `close` looks for them by their environment.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from midwatch.agents.local.embedded.process.ports import free_port
from slurm_lab.accounting import Accounting
from slurm_lab.conf import Layout, Timing, write, write_cgroup
from slurm_lab.packages import search_path

BOOT_S = 30.0


class Row(NamedTuple):
    """One line of squeue."""

    id: str
    state: str
    reason: str
    comment: str


class Lab:
    """A running cluster; `close` ends it and everything that it started."""

    def __init__(
        self, directory: Path, nodes: int = 3, timing: Timing | None = None, accounting: bool = False
    ) -> None:
        ports = free_ports(nodes + 2)
        self.layout = Layout(directory, ports[0], tuple(ports[1:-1]), ports[-1] if accounting else 0)
        self.timing = timing or Timing()
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "SBATCH_"))
        } | {"SLURM_CONF": str(self.layout.conf), "PATH": search_path()}
        self.accounting = Accounting(self) if accounting else None

    def boot(self) -> None:
        """Brings everything up until all nodes are idle; raises TimeoutError with the logs' ends."""
        directory = self.layout.directory
        directory.mkdir(parents=True, exist_ok=True)
        for path in [directory, *(directory / name for name in ("state", "spool", "log"))]:
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
        write(self.layout, self.timing)
        version = re.search(r"(\d+)\.", self.run("slurmd", "-V").stdout)
        write_cgroup(self.layout, int(version[1]) if version else 0)
        key = directory / "munge.key"
        self.run("mungekey", "-c", "-k", str(key))
        pid, log, seed = (directory / f"munged.{name}" for name in ("pid", "log", "seed"))
        options = {"socket": self.layout.munge_socket, "key-file": key, "pid-file": pid, "log-file": log}
        flags = [f"--{name}={value}" for name, value in options.items()]
        self.start("munged", "munged", "--foreground", "--force", f"--seed-file={seed}", *flags)
        self.wait(self.layout.munge_socket.exists, "munged's socket")
        if self.accounting:
            self.accounting.boot()
        self.start_controller()
        for index in range(len(self.layout.node_ports)):
            self.start_node(index)
        try:
            self.wait(lambda: self.idle() == len(self.layout.node_ports) or self.ended(), "all nodes idle")
            if self.ended():
                raise TimeoutError(f"ended at once: {self.ended()}")
            if self.accounting:
                self.accounting.await_controller()
        except TimeoutError as late:
            raise TimeoutError(f"{late}\n{self.logs()}") from None

    def ended(self) -> list[str]:
        """The controller and the nodes whose daemons have ended."""
        names = ["slurmctld", *map(self.layout.node, range(len(self.layout.node_ports)))]
        return [name for name in names if self.daemons[name].poll() is not None]

    def start(self, name: str, *argv: str, environment: Mapping[str, str] | None = None) -> None:
        """Starts a daemon that ends when this process ends."""
        with (self.layout.directory / "log" / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(
                argv,
                env=self.environment | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one prctl; no lock is taken in the child
            )

    def start_controller(self) -> None:
        self.start("slurmctld", "slurmctld", "-D", "-i")

    def start_node(self, index: int) -> None:
        self.start(self.layout.node(index), "slurmd", "-D", "-N", self.layout.node(index))

    def stop_controller(self) -> None:
        """A graceful end: slurmctld saves its state."""
        self._end("slurmctld", signal.SIGTERM)

    def kill_controller(self) -> None:
        """kill -9: what was not yet saved is lost."""
        self._end("slurmctld", signal.SIGKILL)

    def kill_node(self, index: int) -> None:
        """kill -9 of one slurmd; its jobs live on."""
        self._end(self.layout.node(index), signal.SIGKILL)

    def freeze_controller(self) -> None:
        """slurmctld takes connections and answers nothing."""
        self.daemons["slurmctld"].send_signal(signal.SIGSTOP)

    def thaw_controller(self) -> None:
        self.daemons["slurmctld"].send_signal(signal.SIGCONT)

    def run(self, *argv: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """One command with this cluster's configuration; never raises on its exit code."""
        return subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, timeout=timeout, check=False
        )

    def submit(self, *arguments: str, script: str) -> str:
        """sbatch of a shell script; returns the id."""
        path = self.layout.directory / f"job-{time.monotonic_ns()}.sh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        out = f"--output={self.layout.directory}/log/job-%j.out"
        done = self.run("sbatch", "--parsable", out, *arguments, str(path))
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout.strip()

    def queue(self) -> list[Row]:
        """All jobs that slurmctld remembers, finished ones too."""
        done = self.run("squeue", "-h", "-r", "-t", "all", "-o", "%i|%T|%r|%k")
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return [Row(*line.split("|", 3)) for line in done.stdout.splitlines()]

    def state(self, job: str) -> str:
        """The state word of squeue; "" if slurmctld does not know the job."""
        return next((row.state for row in self.queue() if row.id == job), "")

    def wait_state(self, job: str, *states: str, seconds: float = 60) -> str:
        """Waits until the job is in one of the states, and returns it."""
        seen: dict[str, None] = {}

        def arrived() -> bool:
            state = self.state(job)
            seen[state] = None
            return state in states

        try:
            self.wait(arrived, f"{job} in {states}", seconds)
        except TimeoutError as late:
            raise TimeoutError(f"{late}; it was {list(seen)}\n{self.logs()}") from None
        return self.state(job)

    def wait(self, fact: Callable[[], object], what: str, seconds: float = BOOT_S) -> None:
        """Polls until `fact()` is true; raises TimeoutError that names what was awaited."""
        deadline = time.monotonic() + seconds
        while not fact():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not seen within {seconds:.0f} s: {what}")
            time.sleep(0.05)  # between two looks at the fact

    def idle(self) -> int:
        done = self.run("sinfo", "-h", "-N", "-p", "train", "-t", "idle", "-o", "%N")
        return len(set(done.stdout.split())) if done.returncode == 0 else 0

    def clear(self) -> None:
        """Ends all jobs and brings dead daemons back, so that the next test finds an empty, idle cluster."""
        self.thaw_controller()
        if self.daemons["slurmctld"].poll() is not None:
            self.start_controller()
        for index in range(len(self.layout.node_ports)):
            if self.daemons[self.layout.node(index)].poll() is not None:
                self.start_node(index)
        self.wait(lambda: self.run("scontrol", "ping").stdout.find("is UP") >= 0, "slurmctld")
        self.run("scancel", "--full", "--user=root")
        over = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")
        self.wait(lambda: all(row.state in over for row in self.queue()), "all jobs ended")
        nodes = ",".join(self.layout.node(i) for i in range(len(self.layout.node_ports)))
        self.run("scontrol", "update", f"nodename={nodes}", "state=resume")
        self.wait(lambda: self.idle() == len(self.layout.node_ports), "all nodes idle")

    def close(self) -> None:
        """Ends daemons, step daemons and jobs, and removes the directory."""
        for name in reversed(list(self.daemons)):
            self._end(name, signal.SIGKILL)
        for pid in self.orphans():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.wait(lambda: not self.orphans(), "the end of all processes of the lab")
        shutil.rmtree(self.layout.directory, ignore_errors=True)

    def orphans(self) -> list[int]:
        """Live processes, other than our own daemons' parent, that belong to this cluster by environment."""
        mark = b"SLURM_CONF=" + os.fsencode(self.layout.conf)
        return [pid for pid in processes() if pid != os.getpid() and mark in _environment(pid)]

    def logs(self) -> str:
        """The last lines of every daemon's log: what a failed boot has to say."""
        files = sorted((self.layout.directory / "log").iterdir())
        ends = {file.name: file.read_text(errors="replace").splitlines()[-5:] for file in files}
        return "\n".join(f"{name}: {line}" for name, lines in ends.items() for line in lines)

    def _end(self, name: str, how: signal.Signals) -> None:
        process = self.daemons[name]
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(how)
        process.wait(timeout=30)


def free_ports(count: int) -> list[int]:
    """Different ports that no client is lent: a slurmctld that finds its own taken is not tried again."""
    ports: list[int] = []
    while len(ports) < count:
        ports.append(free_port(avoid=ports))
    return ports


def processes() -> Sequence[int]:
    """Pids of live processes; PID 1 of a container may reap late, so zombies do not count."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state != "Z":
                found.append(int(entry.name))
    return found


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
