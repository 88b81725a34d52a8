"""Ships what a local job printed last, when nobody of its own is left to do it. Shell.

A job's shipper drains its files, and the shim starts it again when it dies. Where both died with the job, or
went before Kafka was back, the files are still on this host: a last shipper goes on where the checkpoint
stands, for the same node and start, and says with its final beat that nothing more will come. It is begun
anew until the checkpoint says so. Two at once are kept apart by the checkpoint's lock: who holds it drains,
or is a killed one that is not gone yet.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from midwatch.agents.schedulers.calls import Caller
from midwatch.agents.watcher.census import JobStart
from midwatch.shippers.files.sent_positions import SentPositions, ShipperDirectory
from midwatch.shippers.ship import checkpoint_directory
from midwatch.streams.errors import ConfigurationError, MidwatchError, UsageError
from midwatch.streams.host.process_table import start_ticks
from midwatch.streams.records import Spec
from midwatch.streams.records.identity import local_incarnation, native_id

PATIENCE_S = 60
"""So long one last shipper waits for Kafka, or for a file; meanwhile no other start of the job can ship."""
PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0
GIVEN_UP_S = 3600.0


@dataclass(slots=True)
class Owed:
    """A start of which not all that it printed has arrived. Times are the watcher's monotonic seconds."""

    start: JobStart
    spec: Spec
    until: float
    due: float
    pause: float = PAUSE_S


@dataclass(slots=True)
class LastWords:
    """The drain of this host's own jobs. `owed`: by incarnation, whom to look after again."""

    state_directory: Path
    caller: Caller
    owed: dict[str, Owed] = field(default_factory=dict)

    def ended(self, start: JobStart, spec: Spec | None, now: float) -> None:
        """A start has ended, now or before this executor began: what is left of it is drained from here on.

        Without a spec nobody knows the job's files. The job's own environment is used, as its shim did.
        """
        if spec is not None and native_id(start.incarnation).isdigit():
            self.owed[start.incarnation] = Owed(start, spec, now + GIVEN_UP_S, now)
            self._look(self.owed[start.incarnation], now)

    def again(self, followed: Set[str], now: float) -> None:
        """To be called at each look: whose pause is over is looked after again.

        `followed`: incarnations known to have a later start of their job, whose own shipper drains the rest.
        """
        for incarnation, each in list(self.owed.items()):
            if incarnation in followed:
                del self.owed[incarnation]
            elif each.due <= now:
                self._look(each, now)

    def _look(self, owed: Owed, now: float) -> None:
        start, pid = owed.start, int(native_id(owed.start.incarnation))
        alive = start_ticks(pid)
        if alive is not None and local_incarnation(pid, alive) == start.incarnation:
            return  # a shim tells of the end a moment before it goes itself
        own = self.state_directory / "output" / f"{start.effect_key}.log"
        logs = [*owed.spec.log_paths, *([str(own)] if start.effect_key and own.exists() else [])]
        try:
            if not logs or now > owed.until or not self._unfinished(start):
                del self.owed[start.incarnation]
                return
        except UsageError:
            return  # one of them is at it
        argv = [sys.executable, "-P", "-m", "midwatch", "ship", "--until-pid", f"--drain={PATIENCE_S}"]
        output = self.state_directory / "run" / f"ship-{start.incarnation.replace(':', '-')}.log"
        output.parent.mkdir(parents=True, exist_ok=True)
        environment = self._environment(start, owed.spec)
        try:
            self.caller.spawn(
                [*argv, *dict.fromkeys(logs)], environment, cwd=owed.spec.cwd, output=output, reads=True
            )
        except OSError:  # its directory is gone, and with it whatever lay there
            del self.owed[start.incarnation]
            return
        # Until then it has the lock, or has failed: then the pauses grow, for what fails once may always.
        owed.due, owed.pause = now + owed.pause, min(2 * owed.pause, LONGEST_PAUSE_S)

    def _unfinished(self, start: JobStart) -> bool:
        """Whether a shipper of this start began, did not come to its end, and runs no more. Raises UsageError
        while one runs."""
        place = checkpoint_directory(self.state_directory, start.job, socket.gethostname())
        if not place.is_dir():
            return False
        try:
            checkpoint = ShipperDirectory(place)
        except ConfigurationError:
            return False
        try:
            known = checkpoint.load()
        except MidwatchError:
            return False
        finally:
            checkpoint.close()
        return known.incarnation == start.incarnation or known == SentPositions()

    def _environment(self, start: JobStart, spec: Spec) -> Mapping[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
            **spec.environment,
            "MIDWATCH_STATE_DIRECTORY": str(self.state_directory),
            "MIDWATCH_JOB": start.job,
            "MIDWATCH_INCARNATION": start.incarnation,
            "MIDWATCH_JOB_PID": native_id(start.incarnation),
            "MIDWATCH_NODES": str(spec.nodes),
        }
