"""Shell: the choices of literals of the last bundles, in files: who was killed need not choose again.

A file holds what the same code had chosen for the same rules, or it is not used: its name is made of both,
and its first line is a checksum of the rest. All of them may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from midwatch.rules.choice import Choice
from midwatch.rules.compiler import content_hash
from midwatch.rules.model import Rule

_KEPT = 8
_SUFFIX = ".choice"
_log = logging.getLogger(__name__)


class KeptChoices:
    """The files of one directory, which is made when something is written. Trouble with it is only logged."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, rules: Sequence[Rule]) -> Choice | None:
        """What was chosen for these rules, if it is known."""
        file = self._file(content_hash(rules))
        try:
            checksum, _, text = file.read_bytes().partition(b"\n")
            if checksum.decode("ascii") != _checksum(text):
                raise ValueError("its checksum is wrong")
            return Choice.from_bytes(text)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("%s cannot be used, its rules are compiled anew: %s", file, error)
            return None

    def write(self, choice: Choice) -> None:
        """Keep it, and the latest few besides it."""
        file, text = self._file(choice.rules), choice.to_bytes()
        draft = file.with_name(f"{file.name}.{os.getpid()}.part")
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.write_bytes(_checksum(text).encode() + b"\n" + text)
            draft.replace(file)
            kept = sorted(self._directory.glob(f"*{_SUFFIX}"), key=lambda each: -each.stat().st_mtime_ns)
            for old in kept[_KEPT:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("the choice of literals is not kept: %s", error)

    def _file(self, rules: str) -> Path:
        return self._directory / f"{_checksum(f'{rules} {_code()}'.encode())[:32]}{_SUFFIX}"


@cache
def _code() -> str:
    """A hash of all code that a choice is a function of."""
    digest = hashlib.sha256()
    for source in sorted(files("midwatch.rules").iterdir(), key=lambda each: each.name):
        if source.name.endswith(".py"):
            digest.update(b"%s %s\n" % (source.name.encode(), hashlib.sha256(source.read_bytes()).digest()))
    return digest.hexdigest()


def _checksum(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
