"""Shell: the foreign schedulers that the settings enable, made and looked at before they are used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from midwatch.agents.rulesets.extensions import PAGE, loaded, wrong
from midwatch.agents.schedulers import SCHEDULERS
from midwatch.agents.schedulers.base import Cluster
from midwatch.agents.schedulers.calls import Caller
from midwatch.streams.settings.schema import ExtensionSettings

RESERVED = ("ray", "replay", "file", "unknown")
"""First words of incarnations that no foreign scheduler may take."""


def foreign_clusters(
    settings: ExtensionSettings, state_directory: Path, caller: Caller
) -> dict[str, Cluster]:
    """The drivers by the names that settings, specs and incarnations call them.

    Raises:
        ConfigurationError: one is not installed, is no scheduler, or has a name that is taken.
    """
    return {name: _cluster(name, state_directory, caller) for name in settings.schedulers}


def _cluster(name: str, state_directory: Path, caller: Caller) -> Cluster:
    make = loaded("schedulers", name, (*SCHEDULERS, *RESERVED))
    if not callable(make):
        raise wrong("schedulers", f"{name!r} names nothing that makes a driver", f"see {PAGE}")
    try:
        made: Any = make(name, state_directory, caller)
    except Exception as error:  # whatever a stranger's module raises
        why = f"its driver cannot be made: {type(error).__name__}: {error}"
        raise wrong("schedulers", f"{name!r}: {why}", "ask its author, or take the name out") from error
    if not isinstance(made, Cluster):
        lacking = sorted(word for word in _members() if not hasattr(made, word))
        raise wrong("schedulers", f"{name!r} lacks {', '.join(lacking)}", f"{PAGE} says what one must have")
    if (made.name, made.kind) != (name, name):
        called = f"{name!r} calls itself {made.name!r} of kind {made.kind!r}"
        raise wrong("schedulers", called, "name and kind must both be the name in the settings")
    driver: Cluster = made
    return driver


def _members() -> set[str]:
    return {word for word in vars(Cluster) if not word.startswith("_")}
