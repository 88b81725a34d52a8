"""Shell: what others add to midwatch, by entry points, and only what the settings name.

Where the settings name nothing, nothing is looked for and no foreign code is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from midwatch.agents.policies.foreign import ForeignPolicy
from midwatch.agents.policies.loader import shipped_policies
from midwatch.agents.rulesets.foreign_parts import NO_EXTENSIONS, Extensions
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.base import Detector
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.settings.schema import ExtensionSettings

FINDINGS = (
    "blind",
    "detector_failed",
    "end_contradicted",
    "gpus_held",
    "no_beats",
    "node_silent",
    "poisoned",
    "two_alive",
)
"""Findings of the fold itself: a detector of such a name would be taken for it."""
PAGE = "docs/extending.md"


@cache
def extensions_of(settings: ExtensionSettings) -> Extensions:
    """The detectors and policies that the settings enable; one object for the life of a process.

    Raises:
        ConfigurationError: one is not installed, is no detector or policy, or has a name that is taken.
    """
    if not settings.detectors and not settings.policies:
        return NO_EXTENSIONS
    return Extensions(
        {name: _parts("detectors", name, Detector, (*DETECTORS, *FINDINGS)) for name in settings.detectors},
        {name: _parts("policies", name, ForeignPolicy, shipped_policies()) for name in settings.policies},
    )


def loaded(group: str, name: str, taken: Iterable[str]) -> Any:
    """What the one entry point of that name in `midwatch.<group>` names.

    Raises:
        ConfigurationError: there is none or several, it cannot be imported, or the name is taken.
    """
    if name in taken:
        raise wrong(group, f"{name!r} is a name that midwatch itself uses", "ask its author for another name")
    found = _entry_points(group, name)
    if not found:
        raise wrong(group, f"no installed package offers {name!r} here", f"install the package, see {PAGE}")
    if len(found) > 1:
        packages = ", ".join(sorted(each.dist.name if each.dist else each.value for each in found))
        raise wrong(group, f"several packages offer {name!r}: {packages}", "remove all but one of them")
    try:
        return found[0].load()
    except Exception as error:  # whatever a stranger's module raises while it is imported
        why = f"{found[0].value} cannot be imported: {type(error).__name__}: {error}"
        raise wrong(group, f"{name!r}: {why}", "ask its author, or take the name out") from error


def _entry_points(group: str, name: str) -> list[EntryPoint]:
    # A distribution may stand on the path twice; what it offers is one thing.
    return list({each.value: each for each in entry_points(group=f"midwatch.{group}", name=name)}.values())


def _parts(group: str, name: str, shape: type[Any], taken: Iterable[str]) -> tuple[Any, ...]:
    """The part, or its versions, the newest first; a class is made without arguments."""
    found = loaded(group, name, taken)
    parts = tuple(_made(group, name, each) for each in (found if isinstance(found, tuple) else (found,)))
    for part in parts:
        if not isinstance(part, shape):
            lacking = sorted(word for word in _members(shape) if not hasattr(part, word))
            raise wrong(group, f"{name!r} lacks {', '.join(lacking)}", f"{PAGE} says what one must have")
        if not isinstance(part.version, str) or not part.version:
            raise wrong(group, f"{name!r} names no version", f"{PAGE} says what one must have")
        if part.name != name:
            raise wrong(group, f"{name!r} calls itself {part.name!r}", "both names must be the same")
    if not parts or len({part.version for part in parts}) < len(parts):
        raise wrong(group, f"{name!r} must name each of its versions once", f"see {PAGE}")
    return parts


def _made(group: str, name: str, found: Any) -> Any:
    if not isinstance(found, type):
        return found
    make: Callable[[], Any] = found
    try:
        return make()
    except Exception as error:  # as above
        why = f"{found.__name__}() raised {type(error).__name__}: {error}"
        raise wrong(group, f"{name!r}: {why}", "ask its author, or take the name out") from error


def _members(shape: type[Any]) -> Iterable[str]:
    return (word for each in shape.__mro__ for word in vars(each) if not word.startswith("_"))


def wrong(group: str, what: str, remedy: str) -> ConfigurationError:
    """What is told of a name in `extensions.<group>`."""
    return ConfigurationError(what, where=f"extensions.{group}", remedy=remedy)
