"""The one seam through which midwatch acts on a scheduler or on processes: every call passes a `Caller`.

It is narrow, so that a wrapper can count the calls and prove that there were none. It takes argv lists only,
so that no argument ever meets a shell.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from midwatch.streams.services.ray_jobs import HeadAnswer, RayHead, call

# The variables that a scheduler's tool needs of our environment. No other reaches a tool or a job.
_PASSED = ("PATH", "HOME", "LOGNAME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SLURM_CONF")
_LOOKS = frozenset({"squeue", "sacct", "sinfo"})
_LOOKING_VERBS = frozenset({"show", "ping"})


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """A program's output and exit code. `code` is None when the program took too long and was killed."""

    code: int | None
    out: str
    err: str


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our own variables that tools and jobs get, and those of `extra` that do not steer SLURM's tools.

    A stray SLURM_* or SBATCH_* variable would silently become an option.
    """
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    steering = ("SLURM_", "SBATCH_", "SQUEUE_", "SCANCEL_", "SALLOC_", "SRUN_")
    harmless = {k: v for k, v in (extra or {}).items() if k == "SLURM_CONF" or not k.startswith(steering)}
    return passed | harmless


class Caller(Protocol):
    """Runs programs and signals processes."""

    def run(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str | None = None,
        timeout: float,
        descriptors: tuple[int, ...] = (),
        umask: int = -1,
    ) -> CallAnswer:
        """Runs a program to its end, at most `timeout` seconds. Raises OSError when it cannot start.

        `descriptors`: open files that the program gets under the same numbers. `umask`: -1 for our own.
        """
        ...

    def spawn(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str,
        output: Path,
        reads: bool = False,
    ) -> int:
        """Starts a process in a session of its own that outlives us; returns its pid. Raises OSError.

        `reads`: the process is ours and only reads a job's files.
        """
        ...

    def signal_group(self, group: int, number: signal.Signals) -> None:
        """Sends a signal to a process group. Raises ProcessLookupError when the group is gone."""
        ...

    def request(
        self, head: RayHead, method: str, path: str, body: bytes | None, *, timeout: float
    ) -> HeadAnswer:
        """One call of a Ray head over HTTP. Never raises for a head that is away."""
        ...


class SystemCaller:
    """The caller that really runs programs and sends signals."""

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[bytes]] = []  # kept so that `spawn` can reap them

    def run(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str | None = None,
        timeout: float,
        descriptors: tuple[int, ...] = (),
        umask: int = -1,
    ) -> CallAnswer:
        process = subprocess.Popen(
            list(argv),
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            pass_fds=descriptors,
            umask=umask,
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return CallAnswer(None, out, err or f"no answer within {timeout:.0f} s")
        return CallAnswer(process.returncode, out, err)

    def spawn(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str,
        output: Path,
        reads: bool = False,  # noqa: ARG002  # for CountingCaller
    ) -> int:
        self._children = [child for child in self._children if child.poll() is None]
        with output.open("ab") as file:
            child = subprocess.Popen(
                list(argv),
                env=dict(environment),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._children.append(child)
        return child.pid

    def signal_group(self, group: int, number: signal.Signals) -> None:
        os.killpg(group, number)

    def request(
        self, head: RayHead, method: str, path: str, body: bytes | None, *, timeout: float
    ) -> HeadAnswer:
        return call(head, method, path, body, timeout=timeout)


class CountingCaller:
    """Passes every call on and counts it: `acts` change something, `looks` do not.

    Keys of `acts`: the program (`sbatch`, `scancel`, `scontrol release`), `spawn`, `signal`. Of a Ray head
    the method and the kind of path (`POST jobs`, `POST stop`, `PUT packages`).
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.acts: Counter[str] = Counter()
        self.looks: Counter[str] = Counter()

    def run(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str | None = None,
        timeout: float,
        descriptors: tuple[int, ...] = (),
        umask: int = -1,
    ) -> CallAnswer:
        program = Path(argv[0]).name
        name = " ".join([program, *argv[1:2]]) if program == "scontrol" else program
        is_look = program in _LOOKS or (program == "scontrol" and set(argv[1:2]) <= _LOOKING_VERBS)
        (self.looks if is_look else self.acts)[name] += 1
        return self._caller.run(
            argv, environment, cwd=cwd, timeout=timeout, descriptors=descriptors, umask=umask
        )

    def spawn(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str,
        output: Path,
        reads: bool = False,
    ) -> int:
        (self.looks if reads else self.acts)["spawn"] += 1
        return self._caller.spawn(argv, environment, cwd=cwd, output=output, reads=reads)

    def signal_group(self, group: int, number: signal.Signals) -> None:
        self.acts["signal"] += 1
        self._caller.signal_group(group, number)

    def request(
        self, head: RayHead, method: str, path: str, body: bytes | None, *, timeout: float
    ) -> HeadAnswer:
        kind = "stop" if path.endswith("/stop") else path.strip("/").split("/")[1]
        (self.looks if method == "GET" else self.acts)[f"{method} {kind}"] += 1
        return self._caller.request(head, method, path, body, timeout=timeout)
