"""The patterns of .gitignore and .rayignore, as far as packing a directory needs them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

FILES = (".gitignore", ".rayignore")


class Ignored:
    """The patterns of one file, for paths below its directory. The last one that fits a path decides."""

    def __init__(self, directory: Path, patterns: Iterable[str]) -> None:
        self._directory = directory
        self._patterns = [found for line in patterns if (found := _pattern(line)) is not None]

    @classmethod
    def files_in(cls, directory: Path) -> list[Ignored]:
        """Those of the directory's own files. RAY_RUNTIME_ENV_IGNORE_GITIGNORE=1 leaves .gitignore out."""
        skipped = {".gitignore"} if os.environ.get("RAY_RUNTIME_ENV_IGNORE_GITIGNORE") == "1" else set()
        return [
            cls(directory, (directory / name).read_text(errors="replace").splitlines())
            for name in FILES
            if name not in skipped and (directory / name).is_file()
        ]

    def match(self, path: Path, *, is_directory: bool) -> bool:
        """Whether the path is left out."""
        inner, found = path.relative_to(self._directory).as_posix(), False
        for pattern, negated, of_directories in self._patterns:
            if (is_directory or not of_directories) and pattern.fullmatch(inner):
                found = not negated
        return found


def _pattern(line: str) -> tuple[re.Pattern[str], bool, bool] | None:
    text = line.rstrip()
    if not text or text.startswith("#"):
        return None
    negated, text = text.startswith("!"), text.removeprefix("!")
    of_directories, text = text.endswith("/"), text.rstrip("/")
    anchored = "/" in text
    expression = _expression(text.removeprefix("/"))
    return re.compile(expression if anchored else f"(?:.*/)?{expression}"), negated, of_directories


def _expression(text: str) -> str:
    out, at = "", 0
    while at < len(text):
        if text.startswith("**/", at):
            out, at = f"{out}(?:.*/)?", at + 3
        elif text.startswith("**", at):
            out, at = f"{out}.*", at + 2
        elif text[at] == "*":
            out, at = f"{out}[^/]*", at + 1
        elif text[at] == "?":
            out, at = f"{out}[^/]", at + 1
        elif text[at] == "[" and (end := text.find("]", at + 2)) > 0:
            inner = text[at + 1 : end]
            shown = f"^{inner[1:]}" if inner[0] == "!" else inner
            out, at = f"{out}[{shown}]", end + 1
        else:
            out, at = out + re.escape(text[at]), at + 1
    return out
