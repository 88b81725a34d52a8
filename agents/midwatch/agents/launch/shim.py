"""Runs a job's script with its shipper beside it: `python -m midwatch.agents.run.shim --job J … -- ARGV`.

Script and shipper are siblings: neither ends the other. The shim starts a dead shipper again.
The shipper has a session of its own: a signal to the job's process group does not reach it. So it can
drain the last lines. After the script's end the shim waits at most 30 s for the drain. It returns the
script's exit code in a shell's form. It also ships its own output, where that is a file.

A `--node-log` lies on every node of the job; `%N` in it is the node's name. Where SLURM gave the job several
nodes, the shim of the batch script starts a shim on each other node (`other_nodes`).

The shim passes on signals that SLURM sends to the batch script alone (`--signal=B:USR1@60`).
It does not pass on SIGTERM: whoever ends the job sends it to all of its processes.
A second SIGTERM hurts some trainers.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from midwatch.agents.launch import backoff
from midwatch.agents.launch.other_nodes import OtherNodes, nodes_of, step_argv
from midwatch.agents.schedulers.local.wakeups import Wakeups
from midwatch.agents.schedulers.ray.driver import driver_incarnation
from midwatch.agents.schedulers.resume import begin
from midwatch.agents.schedulers.slurm.exported import from_file
from midwatch.agents.schedulers.slurm.job_array import of_task
from midwatch.agents.schedulers.wrapping import is_kept, verified_script
from midwatch.streams.errors import MidwatchError
from midwatch.streams.host.process_table import start_ticks
from midwatch.streams.records.identity import local_incarnation, native_id, slurm_incarnation
from midwatch.streams.settings.file import load_settings

DRAIN_S = 30.0
_POLL_S = 0.05
_LOOK_S = 0.25
"""Seconds between two looks. A pause before the shipper's next start may be longer by so much."""
_PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)
_HOPELESS = (2, 3)  # usage and configuration: another start would fail in the same way
_NOT_FOUND, _NOT_EXECUTABLE, _CONFIGURATION = 127, 126, 3


@dataclass(frozen=True, slots=True)
class ShimArguments:
    """The shim's command line."""

    job: str
    nodes: int
    logs: tuple[str, ...]
    argv: tuple[str, ...]
    node_logs: tuple[str, ...] = ()
    alone: bool = False  # ship this node only, start no shim on others


def main(argv: Sequence[str]) -> int:
    """Runs the script to its end and returns its exit code."""
    arguments = on_all_nodes(of_this_task(_arguments(argv), os.environ), os.environ)
    inherited = os.environ.get("MIDWATCH_INCARNATION", "") if arguments.alone else ""
    incarnation = inherited or _incarnation(os.environ)
    try:
        script_argv = _checked(arguments.argv)
    except MidwatchError as error:
        sys.stderr.write(f"midwatch: {error}\n")
        return _CONFIGURATION
    restarts = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
    beginning = begin(script_argv, os.environ, restarts=restarts)
    environment = {
        **from_file(beginning.environment),
        "MIDWATCH_JOB": _job(arguments.job, os.environ, incarnation),
        "MIDWATCH_INCARNATION": incarnation,
    }
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    # Before the start: by default a signal that comes during it would end the shim.
    early_signals: list[int] = []
    wakeups = Wakeups()
    for number in _PASSED_ON:
        signal.signal(number, lambda n, _: early_signals.append(n))
    try:
        script = subprocess.Popen(beginning.argv, env=environment)
    except FileNotFoundError:
        sys.stderr.write(f"midwatch: {script_argv[0]} was not found\n")
        return _NOT_FOUND
    except OSError as error:
        sys.stderr.write(f"midwatch: {script_argv[0]} cannot be run: {error.strerror}\n")
        return _NOT_EXECUTABLE
    for number in _PASSED_ON:
        signal.signal(number, lambda n, _: script.send_signal(n))
    for early in early_signals:
        script.send_signal(early)
    _note(_log_file(environment), *beginning.notes)
    shipper = Shipper(arguments, {**environment, **beginning.for_shipper}, script.pid)
    others = _others(arguments, environment)
    while script.poll() is None:
        shipper.look()
        for step in others:
            step.look()
        wakeups.rest(_LOOK_S)
    deadline = time.monotonic() + DRAIN_S
    for step in others:
        step.end()
    shipper.drain(deadline)
    for step in others:
        while not step.ended() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        step.kill()
    return 128 - script.returncode if script.returncode < 0 else script.returncode


def of_this_task(arguments: ShimArguments, environment: Mapping[str, str]) -> ShimArguments:
    """The arguments with the index of this task, where the job is an array."""
    task = environment.get("SLURM_ARRAY_TASK_ID")
    if not task:
        return arguments
    logs, node_logs = (tuple(of_task(p, task) for p in ps) for ps in (arguments.logs, arguments.node_logs))
    return replace(arguments, job=of_task(arguments.job, task), logs=logs, node_logs=node_logs)


def on_all_nodes(arguments: ShimArguments, environment: Mapping[str, str]) -> ShimArguments:
    """The arguments with SLURM's number of nodes, where logs lie on every node."""
    if not arguments.node_logs:
        return arguments
    return replace(arguments, nodes=max(arguments.nodes, nodes_of(environment)))


def _others(arguments: ShimArguments, environment: Mapping[str, str]) -> tuple[OtherNodes, ...]:
    if arguments.alone or not arguments.node_logs or nodes_of(os.environ) < 2:
        return ()
    log = _log_file(environment)
    argv = step_argv(job=environment["MIDWATCH_JOB"], nodes=arguments.nodes, node_logs=arguments.node_logs)
    return (OtherNodes(argv, environment, log, lambda text: _note(log, text)),)


class Shipper:
    """Keeps `midwatch ship` running beside the script: starts it again when it dies."""

    def __init__(self, arguments: ShimArguments, environment: Mapping[str, str], script: int) -> None:
        here = [path.replace("%N", node_name(environment)) for path in arguments.node_logs]
        logs = list(dict.fromkeys([*arguments.logs, *here, *_own_outputs()]))
        self._argv = [sys.executable, "-P", "-m", "midwatch", "ship", "--until-pid", *logs]
        self._environment = {
            **environment,
            "MIDWATCH_JOB_PID": str(script),
            "MIDWATCH_NODES": str(arguments.nodes),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._deaths: tuple[float, ...] = ()
        self._next_start = 0.0
        self._log = _log_file(environment) if logs else None
        self._has_logs = bool(logs)

    def look(self) -> None:
        """Starts the shipper if it does not run and its pause is over. Never waits."""
        now = time.monotonic()
        if self._process is not None and self._process.poll() is not None:
            self._deaths = (*backoff.recent(self._deaths, now), now)
            pause = backoff.pause(self._deaths, now)
            _note(
                self._log,
                f"the shipper ended with status {self._process.returncode}; next start in {pause:g} s",
            )
            self._process = None
            self._next_start = now + pause
        if self._process is None and self._has_logs and now >= self._next_start:
            self._process = self._start()

    def drain(self, deadline: float) -> None:
        """Waits until the shipper has shipped the last line and ended, at most until the deadline."""
        self._next_start = 0.0
        while self._has_logs and time.monotonic() < deadline:
            if self._process is not None and self._process.poll() in (0, *_HOPELESS):
                return
            self.look()
            time.sleep(_POLL_S)
        self._stop()

    def _start(self) -> subprocess.Popen[bytes] | None:
        output = self._log.open("ab") if self._log else None
        try:
            return subprocess.Popen(
                self._argv,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output or subprocess.DEVNULL,
                stderr=output or subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            self._next_start = time.monotonic() + backoff.PAUSES[-1]
            return None
        finally:
            if output:
                output.close()

    def _stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _note(log: Path | None, *texts: str) -> None:
    if log and texts:
        with contextlib.suppress(OSError), log.open("a") as file:
            for text in texts:
                file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")


def node_name(environment: Mapping[str, str]) -> str:
    """This node's name, as its shipper sends it."""
    return environment.get("MIDWATCH_NODE") or environment.get("SLURMD_NODENAME") or socket.gethostname()


def _arguments(arguments: Sequence[str]) -> ShimArguments:
    parser = argparse.ArgumentParser(prog="midwatch.agents.launch.shim")
    parser.add_argument("--job", required=True)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--log", action="append", default=[])
    parser.add_argument("--node-log", action="append", default=[])
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("argv", nargs="+")
    line = parser.parse_args(arguments)
    return ShimArguments(
        line.job, line.nodes, tuple(line.log), tuple(line.argv), tuple(line.node_log), alone=line.alone
    )


def _job(name: str, environment: Mapping[str, str], incarnation: str) -> str:
    """The job's whole name. A job without one gets the native id of its first start.

    Later starts find that name in MIDWATCH_JOB.
    """
    if "/" in name:
        return name
    return environment.get("MIDWATCH_JOB") or f"{name}/{native_id(incarnation)}"


def _incarnation(environment: Mapping[str, str]) -> str:
    """The incarnation of this start. On `local` it names the leader of our process group."""
    if job := environment.get("SLURM_JOB_ID"):
        array, task = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
        restarts = int(environment.get("SLURM_RESTART_COUNT") or 0)
        return slurm_incarnation(f"{array}_{task}" if array and task else job, restarts)
    if driver := driver_incarnation(environment, _own_outputs()):
        return driver
    leader = os.getpgrp()
    return local_incarnation(leader, start_ticks(leader) or 0)


def _checked(argv: tuple[str, ...]) -> list[str]:
    """The argv. Raises ConfigurationError if a kept script is not the one that was signed."""
    if is_kept(Path(argv[0])):
        verified_script(Path(argv[0]))
    return list(argv)


def _own_outputs() -> list[str]:
    """The files that standard output and error go to, if they are files."""
    found = []
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return found


def _log_file(environment: Mapping[str, str]) -> Path | None:
    """The file for the shipper's own messages, which must not mix with the job's log."""
    try:
        folder = load_settings(environment=environment).state_directory / "run"
        folder.mkdir(parents=True, exist_ok=True)
    except (MidwatchError, OSError):
        return None
    return folder / f"ship-{environment['MIDWATCH_INCARNATION'].replace(':', '-')}.log"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
