"""Jobs as process groups on this machine, for a workstation, a test, or the demo.

The state directory is the queue: `effects/<key>` records the start with this key, its process and its end.
Of a job that was started in another way only the pid and the start time are known.
"""

from __future__ import annotations

import getpass
import signal
import sys
import time
from pathlib import Path

from midwatch.agents.schedulers.base import (
    SOMEBODY,
    Hint,
    SchedulerEpoch,
    SchedulerJob,
    StartSpec,
    StartState,
    Sweep,
)
from midwatch.agents.schedulers.calls import Caller, environment
from midwatch.agents.schedulers.local.effect_file import KEY, Record, move_to_past, read, read_all
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.host.process_table import boot_id, group_members, start_ticks
from midwatch.streams.records.identity import local_incarnation, native_id

SHOWN_S = 10.0  # how long to wait for the shim's record


class LocalCluster:
    """This machine. It cannot hold a job: `submit_held` runs it at once, and `release` does nothing."""

    kind = "local"
    holds = False

    def __init__(self, name: str, state_directory: Path, caller: Caller) -> None:
        self.name = name
        self.directory = state_directory
        self._caller = caller

    def sweep(self) -> Sweep:
        return Sweep(tuple(_job(record) for record in read_all(self.directory)))

    def find(self, effect_key: str) -> tuple[SchedulerJob, ...]:
        record = read(self.directory, effect_key)
        return (_job(record),) if record else ()

    def epoch(self) -> SchedulerEpoch:
        return SchedulerEpoch(boot_id(), float(Path("/proc/uptime").read_text().split()[0]))

    def state(self, incarnation: str) -> StartState:
        for job in self.sweep().jobs:
            if job.incarnation == incarnation:
                return job.state
        if _alive(*_parse(incarnation)):
            return StartState("running", word="RUNNING")
        return StartState(
            "ended", word="GONE", mode="ended", reason="no such process; its exit code is unknown"
        )

    def submit_held(self, spec: StartSpec, effect_key: str, after: str = "") -> Hint:
        """Does not wait for `after`: while that process lives, the hint is `unclear` and nothing starts."""
        if spec.user not in ("", getpass.getuser()):
            return Hint("refused", f"a job of {spec.user} cannot be started by {getpass.getuser()}")
        if not KEY.fullmatch(effect_key):
            raise ConfigurationError(f"{effect_key!r} is not an effect key")
        if after and not self.state(_after(self, after)).over:
            return Hint("unclear", f"the process {after} is not gone yet")
        output = self.directory / "output" / f"{effect_key}.log"
        output.parent.mkdir(parents=True, exist_ok=True)
        shim = [sys.executable, "-m", "midwatch.agents.schedulers.local.shim"]
        argv = [*shim, str(self.directory.resolve()), effect_key, "--", *spec.argv]
        try:
            self._caller.spawn(argv, environment(spec.environment), cwd=spec.cwd, output=output.resolve())
        except OSError as error:
            return Hint("refused", f"it cannot be started in {spec.cwd}: {error.strerror}")
        deadline = time.monotonic() + SHOWN_S
        while time.monotonic() < deadline:
            if record := read(self.directory, effect_key):
                return Hint("done", str(record.pid))
            time.sleep(0.01)
        return Hint("unclear", "the shim has not begun yet")

    def retire(self, effect_key: str, before: str) -> None:
        """Moves the key's record to `effects/past` if its start is older than `before`.

        Without this, a job whose name is used again after a wipe of Kafka and Redis finds its first
        restart done.
        """
        record = read(self.directory, effect_key)
        if record is None or not _state(record).over:
            return
        pid, ticks = _parse(before)
        old = next((r for r in read_all(self.directory) if (r.pid, r.ticks) == (pid, ticks)), None)
        boot = old.boot if old else boot_id()
        if record.boot == boot:
            earlier = record.ticks < ticks
        else:
            earlier = old is not None and record.started_at < old.started_at
        if earlier:
            move_to_past(self.directory, record)

    def release(self, incarnation: str, effect_key: str) -> Hint:  # noqa: ARG002 - nothing is ever held here
        return Hint("done")

    def cancel(self, incarnation: str, effect_key: str = "", *, force: bool = False) -> Hint:
        """SIGTERM to the group; a shim in it sends SIGKILL after a grace time. `force`: SIGKILL at once."""
        pid, ticks = _parse(incarnation)
        record = next((r for r in read_all(self.directory) if (r.pid, r.ticks) == (pid, ticks)), None)
        if effect_key and (record is None or record.key != effect_key):
            return Hint("refused", f"the process {pid} does not carry the key {effect_key}")
        if not _alive(pid, ticks):
            return Hint("refused", f"the process {pid} that was started at {ticks} is gone")
        try:
            self._caller.signal_group(pid, signal.SIGKILL if force else signal.SIGTERM)
        except ProcessLookupError:
            return Hint("refused", f"the process {pid} leads no process group")
        except PermissionError:
            return Hint("refused", f"the process {pid} belongs to another user")
        return Hint("done")


def _after(cluster: LocalCluster, native: str) -> str:
    """The incarnation of the process that has, or last had, this pid."""
    known = [job.incarnation for job in cluster.sweep().jobs if job.native_id == native]
    return known[-1] if known else local_incarnation(int(native), start_ticks(int(native)) or 0)


def _alive(pid: int, ticks: int) -> bool:
    """Whether the process, or another process of the group that it led, lives.

    The kernel does not reuse a pid that names a group, so another start time means that the group is gone.
    """
    now = start_ticks(pid)
    return now == ticks if now is not None else bool(group_members(pid))


def _parse(incarnation: str) -> tuple[int, int]:
    return int(native_id(incarnation)), int(incarnation.rpartition(":")[2])


def _job(record: Record) -> SchedulerJob:
    return SchedulerJob(
        native_id=str(record.pid),
        incarnation=local_incarnation(record.pid, record.ticks),
        state=_state(record),
        effect_key=record.key,
        user=record.user,
        started=str(record.ticks),
    )


def _state(record: Record) -> StartState:
    if record.code is not None:
        code, number = (None, -record.code) if record.code < 0 else (record.code, None)
        if record.cancelled:
            return StartState("ended", "CANCELLED", "ended", "cancelled", code, number, by_person=SOMEBODY)
        if record.code == 0:
            return StartState("ended", word="COMPLETED", mode="success", exit_code=0)
        return StartState("ended", "FAILED", "crash", "", code, number, record.reason)
    if record.boot == boot_id() and _alive(record.pid, record.ticks):
        return StartState("running", word="RUNNING")
    reason = "the machine was restarted" if record.boot != boot_id() else "its shim was killed"
    return StartState("ended", word="LOST", mode="ended", reason=f"{reason}; its exit code is unknown")
