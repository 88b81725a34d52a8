"""The jars of Kafka: the lock that names them, and the check of a file against it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from midwatch.agents.local.embedded.errors import JarMissing, WrongChecksum


@dataclass(frozen=True, slots=True)
class Jar:
    """One row of the lock: a Maven coordinate and the only content that we accept for it."""

    group: str
    artifact: str
    version: str
    sha256: str
    size: int

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def repository_path(self) -> str:
        """The jar's path below the base of a Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


def parse_lock(text: str) -> tuple[Jar, ...]:
    """Reads rows of `sha256 size group:artifact:version`. Returns them sorted by file name.

    The order matters: Java's class-data archive fits only one class path.
    """
    jars = []
    for row in text.splitlines():
        if not row or row.startswith("#"):
            continue
        sha256, size, coordinates = row.split()
        group, artifact, version = coordinates.split(":")
        jars.append(Jar(group, artifact, version, sha256, int(size)))
    return tuple(sorted(jars, key=lambda jar: jar.file_name))


def locked_jars() -> tuple[Jar, ...]:
    """The jars of the Kafka that this midwatch embeds."""
    return parse_lock(files(__package__).joinpath("jars.lock").read_text(encoding="utf-8"))


def kafka_version(jars: Iterable[Jar]) -> str:
    """The version of the broker among `jars`."""
    return next(jar.version for jar in jars if jar.artifact.startswith("kafka_"))


def matches(jar: Jar, file: Path) -> bool:
    """Whether `file` exists and is the locked jar, byte for byte: size first, then sha256."""
    try:
        if file.stat().st_size != jar.size:
            return False
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == jar.sha256
    except OSError:
        return False


def given_jars(jars: Iterable[Jar], directory: Path) -> tuple[Path, ...]:
    """The class path from a directory that the user filled (`--jars DIR`). Downloads nothing.

    Raises JarMissing with all missing jars, or WrongChecksum for the first file that differs from the lock.
    """
    jars = tuple(jars)
    absent = [jar for jar in jars if not (directory / jar.file_name).is_file()]
    if absent:
        names = ", ".join(jar.coordinates for jar in absent[:5])
        more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
        raise JarMissing(
            f"{len(absent)} of {len(jars)} Kafka jars are not in the directory: {names}{more}",
            where=str(directory),
            remedy="copy them there by their Maven file names (artifact-version.jar), or leave --jars out "
            "to download them",
        )
    for jar in jars:
        if not matches(jar, directory / jar.file_name):
            raise WrongChecksum(
                f"the file is not {jar.coordinates} as locked ({jar.size} bytes, sha256 {jar.sha256})",
                where=str(directory / jar.file_name),
                remedy="replace it by the jar of a Maven repository; midwatch did not use it",
            )
    return tuple(directory / jar.file_name for jar in jars)
