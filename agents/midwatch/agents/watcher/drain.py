"""Ships what a local job printed last, when nobody of its own is left to do it. Shell.

A job's shipper drains its files, and the shim starts it again when it dies. Where both died with the job, the
files are still on this host: a last shipper goes on where the checkpoint stands, for the same node and start,
and says with its final beat that nothing more will come. Two at once are kept apart by the checkpoint's lock:
who holds it drains, or is a killed one that is not gone yet, so it is asked for again.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from midwatch.agents.clusters.calls import Caller
from midwatch.agents.clusters.processes import start_ticks
from midwatch.shippers.checkpoint import StateDirectory
from midwatch.shippers.ship import checkpoint_directory
from midwatch.streams.errors import ConfigurationError, MidwatchError, UsageError
from midwatch.streams.identity import local_incarnation
from midwatch.streams.records import SchedulerFact, Spec


@dataclass(slots=True)
class LastWords:
    """The drain of this host's own jobs. `held`: those whose process was not gone when they ended, or
    whose checkpoint somebody held."""

    state_directory: Path
    caller: Caller
    held: dict[str, tuple[SchedulerFact, Spec]] = field(default_factory=dict)

    def ship(self, fact: SchedulerFact, spec: Spec | None) -> bool:
        """Begins a drain of the start that `fact` says has ended; False where there is nothing to drain.

        Without a spec nobody knows the job's files. The job's own environment is used, as its shim did.
        """
        if spec is None:
            return False
        alive = start_ticks(int(fact.native_id))
        if alive is not None:
            # A shim tells of the end a moment before it goes itself; another process may have its number.
            if local_incarnation(int(fact.native_id), alive) == fact.incarnation:
                self.held[fact.incarnation] = (fact, spec)
            return False
        own = self.state_directory / "output" / f"{fact.effect_key}.log"
        logs = [*spec.log_paths, *([str(own)] if fact.effect_key and own.exists() else [])]
        try:
            if not logs or not self._unfinished(fact):
                return False
        except UsageError:
            self.held[fact.incarnation] = (fact, spec)
            return False
        argv = [sys.executable, "-P", "-m", "midwatch", "ship", "--until-pid", *dict.fromkeys(logs)]
        output = self.state_directory / "run" / f"ship-{fact.incarnation.replace(':', '-')}.log"
        output.parent.mkdir(parents=True, exist_ok=True)
        try:
            environment = self._environment(fact, spec)
            self.caller.spawn(argv, environment, cwd=spec.cwd, output=output, reads=True)
        except OSError:  # its directory is gone, and with it whatever lay there
            return False
        return True

    def again(self) -> None:
        """Ask again for what was held."""
        held, self.held = self.held, {}
        for fact, spec in held.values():
            self.ship(fact, spec)

    def _unfinished(self, fact: SchedulerFact) -> bool:
        """Whether a shipper of this start began, did not come to its end, and runs no more. Raises UsageError
        while one runs."""
        place = checkpoint_directory(self.state_directory, fact.job, socket.gethostname())
        if not place.is_dir():
            return False
        try:
            checkpoint = StateDirectory(place)
        except ConfigurationError:
            return False
        try:
            known = checkpoint.load()
        except MidwatchError:
            return False
        finally:
            checkpoint.close()
        return known.incarnation == fact.incarnation or not known.files

    def _environment(self, fact: SchedulerFact, spec: Spec) -> Mapping[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
            **spec.environment,
            "MIDWATCH_STATE_DIRECTORY": str(self.state_directory),
            "MIDWATCH_JOB": fact.job,
            "MIDWATCH_INCARNATION": fact.incarnation,
            "MIDWATCH_JOB_PID": fact.native_id,
            "MIDWATCH_NODES": str(spec.nodes),
        }
