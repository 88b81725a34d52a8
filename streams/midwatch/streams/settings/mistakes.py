"""All mistakes in a settings file, a variable or an option at once, each with its place."""

from __future__ import annotations

from dataclasses import dataclass

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.strict_yaml import LocatedError, SourceLocation, YamlNode, read_yaml


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a file or a variable: its place, the mistake, and what to write instead."""

    where: SourceLocation | str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f"\n  {self.remedy}" if self.remedy else "")


class Mistakes(ConfigurationError):
    """All mistakes at once, sorted by place. The text lists them one after the other."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        self.mistakes = tuple(sorted(mistakes, key=_order))
        first = self.mistakes[0]
        super().__init__(first.what, where=str(first.where), remedy=first.remedy)

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.mistakes)


def settings_tree(file: str, content: bytes, mistakes: list[Mistake]) -> YamlNode | None:
    """The tree of a settings file, or None if it is empty or cannot be parsed. Appends to `mistakes`."""
    errors: list[LocatedError] = []
    tree = read_yaml(file, content, errors, may_be_empty=True)
    mistakes += [Mistake(error.location, error.what, error.remedy) for error in errors]
    return tree


def _order(mistake: Mistake) -> SourceLocation:
    return mistake.where if isinstance(mistake.where, SourceLocation) else SourceLocation("", 0, 0)
