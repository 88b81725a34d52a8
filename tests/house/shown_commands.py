"""The commands that Markdown pages show: whole lines in `sh` blocks, and names in the running text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from house.tree import ROOT, files_of_repository

_FENCE = re.compile(r"^```(\w*)\s*$")
_INLINE = re.compile(r"`((?:\.venv/bin/)?midwatch [a-z][^`]*|make [a-z-]+)`")
_SHELL = ("sh", "bash", "console")


@dataclass(frozen=True, slots=True)
class Shown:
    """One command. `whole`: it stands in a block, to be typed as it is."""

    page: str
    line: int
    words: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        return f"{self.page}:{self.line} {' '.join(self.words)}"


def shown(root: Path = ROOT) -> list[Shown]:
    """Every command of midwatch and of make on the repository's pages."""
    pages = [path for path in files_of_repository(root) if path.suffix.lower() == ".md"]
    return [each for page in pages for each in _of_page(page, str(page.relative_to(root)))]


def _of_page(page: Path, name: str) -> Iterator[Shown]:
    fence: str | None = None
    for number, text in enumerate(page.read_text().splitlines(), 1):
        if mark := _FENCE.match(text):
            fence = mark[1] if fence is None else None
        elif fence in _SHELL:
            words = shlex.split(text, comments=True)
            if words:
                yield Shown(name, number, tuple(words), True)
        elif fence is None:
            for found in _INLINE.finditer(text):
                for each in _alternatives(found[1].split()):
                    yield Shown(name, number, each, False)


def _alternatives(words: list[str]) -> Iterator[tuple[str, ...]]:
    """`rules check|test` are two commands."""
    many = next((i for i, word in enumerate(words) if "|" in word), None)
    if many is None:
        yield tuple(word.removeprefix(".venv/bin/") for word in words)
        return
    for each in words[many].split("|"):
        yield from _alternatives([*words[:many], each, *words[many + 1 :]])
