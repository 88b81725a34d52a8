"""Ships the last output of a local job whose own shipper and shim are gone. Shell.

A job's shipper drains its files, and the shim starts a dead shipper again. Both may die with the job, or
end before Kafka is back. The files are then still on this host. The executor starts a last shipper for
the same node and start, which goes on at the checkpoint. Its final heartbeat says that no more output
will come. The executor starts it again until the checkpoint says that it has finished. The checkpoint's
lock lets only one shipper run at a time; a killed shipper may hold the lock for a moment.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from midwatch.agents.schedulers.calls import Caller
from midwatch.agents.schedulers.wrapping import environment_of
from midwatch.agents.watcher.census import JobStart
from midwatch.shippers.files.sent_positions import SentPositions, ShipperDirectory
from midwatch.shippers.ship import checkpoint_directory
from midwatch.streams.errors import ConfigurationError, MidwatchError, UsageError
from midwatch.streams.host.process_table import start_ticks
from midwatch.streams.records import Spec
from midwatch.streams.records.identity import local_incarnation, native_id

PATIENCE_S = 60
"""Seconds that a last shipper waits for Kafka or a file; no other start of the job can ship meanwhile."""
PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0
GIVEN_UP_S = 3600.0


@dataclass(slots=True)
class Owed:
    """An ended start whose output has not all arrived. Times are the watcher's monotonic seconds."""

    start: JobStart
    spec: Spec
    until: float
    due: float
    pause: float = PAUSE_S


@dataclass(slots=True)
class LastWords:
    """Drains the local jobs of this host. `owed`: the starts to drain, by incarnation."""

    state_directory: Path
    caller: Caller
    owed: dict[str, Owed] = field(default_factory=dict)

    def ended(self, start: JobStart, spec: Spec | None, now: float) -> None:
        """Begins to drain a start that has ended, now or before this executor began.

        Does nothing without a spec, because nobody then knows the job's files. The shipper gets the job's
        environment, as it had from the shim.
        """
        if spec is not None and native_id(start.incarnation).isdigit():
            self.owed[start.incarnation] = Owed(start, spec, now + GIVEN_UP_S, now)
            self._look(self.owed[start.incarnation], now)

    def again(self, followed: Set[str], now: float) -> None:
        """Drains again each start whose pause is over. Call it at each look.

        `followed`: incarnations with a later start of their job, whose own shipper drains the rest.
        """
        for incarnation, owed in list(self.owed.items()):
            if incarnation in followed:
                del self.owed[incarnation]
            elif owed.due <= now:
                self._look(owed, now)

    def _look(self, owed: Owed, now: float) -> None:
        start, pid = owed.start, int(native_id(owed.start.incarnation))
        ticks = start_ticks(pid)
        if ticks is not None and local_incarnation(pid, ticks) == start.incarnation:
            return  # a shim reports the end a moment before it exits
        output_log = self.state_directory / "output" / f"{start.effect_key}.log"
        captured = [str(output_log)] if start.effect_key and output_log.exists() else []
        logs = [*owed.spec.log_paths, *captured]
        try:
            if not logs or now > owed.until or not self._unfinished(start):
                del self.owed[start.incarnation]
                return
        except UsageError:
            return  # a shipper of this start runs
        argv = [sys.executable, "-P", "-m", "midwatch", "ship", "--until-pid", f"--drain={PATIENCE_S}"]
        shipper_log = self.state_directory / "run" / f"ship-{start.incarnation.replace(':', '-')}.log"
        shipper_log.parent.mkdir(parents=True, exist_ok=True)
        try:
            environment = self._environment(start, owed.spec)
            self.caller.spawn(
                [*argv, *dict.fromkeys(logs)], environment, cwd=owed.spec.cwd, output=shipper_log, reads=True
            )
        except (OSError, ConfigurationError):  # the job's working directory or its environment is gone
            del self.owed[start.incarnation]
            return
        # By then the shipper has the lock or has failed. A failure may repeat for ever, so the pauses grow.
        owed.due, owed.pause = now + owed.pause, min(2 * owed.pause, LONGEST_PAUSE_S)

    def _unfinished(self, start: JobStart) -> bool:
        """Whether a shipper of this start began, did not finish, and is gone.

        Raises:
            UsageError: a shipper of this start still runs.
        """
        directory = checkpoint_directory(self.state_directory, start.job, socket.gethostname())
        if not directory.is_dir():
            return False
        try:
            checkpoint = ShipperDirectory(directory)
        except ConfigurationError:
            return False
        try:
            positions = checkpoint.load()
        except MidwatchError:
            return False
        finally:
            checkpoint.close()
        return positions.incarnation == start.incarnation or positions == SentPositions()

    def _environment(self, start: JobStart, spec: Spec) -> Mapping[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
            **environment_of(spec),
            "MIDWATCH_STATE_DIRECTORY": str(self.state_directory),
            "MIDWATCH_JOB": start.job,
            "MIDWATCH_INCARNATION": start.incarnation,
            "MIDWATCH_JOB_PID": native_id(start.incarnation),
            "MIDWATCH_NODES": str(spec.nodes),
        }
