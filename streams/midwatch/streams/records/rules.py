"""The records of the topic `rules`: checked bundles, the current one, and refused rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from midwatch.streams.records.bounds import Count, Duration, Millis, Name
from midwatch.streams.records.words import Phase

CURRENT = b"current"
"""The key of the only `InForce`."""
REFUSED = b"refused"
"""The key of the only `RefusedRules`. A record without a value withdraws it."""

Way = Literal["push", "files"]


@dataclass(frozen=True, slots=True)
class ForeignParts:
    """Versions, by name, of the foreign detectors and policies."""

    detectors: Mapping[Name, str] = field(default_factory=dict)
    policies: Mapping[Name, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleBundle:
    """All rules and policies of a watch. Its key is the hash of its content, so a bundle never changes.

    `rules` are plain values. `policies` maps a policy's name to its text in midwatch's format. `policy_files`
    maps a path to a policy's name, for settings that name a file as the default policy. `outcomes` counts the
    user's own restarts by the class of the end before them: those that passed, and all.
    """

    rules: tuple[Mapping[str, Any], ...]
    silence: Mapping[Phase, Duration] = field(default_factory=dict)
    any_line: bool = False
    policies: Mapping[str, str] = field(default_factory=dict)
    policy_files: Mapping[str, str] = field(default_factory=dict)
    foreign: ForeignParts | UnsetType = UNSET  # where there are none, the bytes are those of earlier bundles
    outcomes: Mapping[str, tuple[Count, Count]] | UnsetType = UNSET  # as above


@dataclass(frozen=True, slots=True)
class InForce:
    """The current bundle from here on: pushed by a person, or read from the files of a match worker.

    `made_of`: the hash of what was read. It differs from `bundle` if slow rules were left out.
    """

    bundle: Name
    by: Way
    who: Name
    at_ms: Millis
    files: tuple[str, ...] = ()
    made_of: Name = ""


@dataclass(frozen=True, slots=True)
class RefusedRules:
    """Rules that could not be used. The current bundle stays in force."""

    by: Way
    who: Name
    at_ms: Millis
    errors: tuple[str, ...]
