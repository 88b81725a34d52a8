"""Mistakes in rule files: all of them at once, each with file:line:column and its remedy."""

from __future__ import annotations

from collections.abc import Iterable

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.strict_yaml import LocatedError

__all__ = ["LocatedError", "RuleErrors"]


class RuleErrors(ConfigurationError):
    """Rule files that cannot be used. `errors` holds all mistakes of all files, in file order.

    A failed reading changes nothing: a caller with an older rule set keeps it.
    """

    def __init__(self, errors: Iterable[LocatedError]) -> None:
        self.errors = tuple(sorted(set(errors), key=lambda error: (error.location, error.what)))
        count = len(self.errors)
        super().__init__(
            f"{count} mistake{'s' if count != 1 else ''} in rule files",
            where=str(self.errors[0].location) if self.errors else "",
            remedy="Correct these places; `midwatch rules check` lists them again.",
        )

    def __reduce__(self) -> tuple[type[RuleErrors], tuple[object, ...]]:
        return type(self), (self.errors,)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)
