"""What the topic `rules` holds: whole checked bundles, which of them is in force, and what was refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from midwatch.streams.records.bounds import Duration, Millis, Name
from midwatch.streams.records.words import Phase

CURRENT = b"current"
"""The key of the one `InForce`."""
REFUSED = b"refused"
"""The key of the one `RefusedRules`; a record without a value takes it back."""

Way = Literal["push", "files"]


@dataclass(frozen=True, slots=True)
class ForeignParts:
    """Versions, by name, of the detectors and policies of others that judge beside ours."""

    detectors: Mapping[Name, str] = field(default_factory=dict)
    policies: Mapping[Name, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleBundle:
    """Everything that a watch judges by; its key is the hash of what it says, so it never changes.

    `rules` are plain values; `policies` the texts of policy files in our own form, by the policy's name;
    `policy_files` says which of them a path means, where the settings name a file as everybody's policy.
    """

    rules: tuple[Mapping[str, Any], ...]
    silence: Mapping[Phase, Duration] = field(default_factory=dict)
    any_line: bool = False
    policies: Mapping[str, str] = field(default_factory=dict)
    policy_files: Mapping[str, str] = field(default_factory=dict)
    foreign: ForeignParts | UnsetType = UNSET  # where there are none, the bytes are those of earlier bundles


@dataclass(frozen=True, slots=True)
class InForce:
    """The bundle in force from here on: pushed by somebody, or read from the files of a match worker.

    `made_of`: the hash of what was read; another than the bundle's where rules too slow were left out.
    """

    bundle: Name
    by: Way
    who: Name
    at_ms: Millis
    files: tuple[str, ...] = ()
    made_of: Name = ""


@dataclass(frozen=True, slots=True)
class RefusedRules:
    """What was to be in force and could not be used. The bundle in force before stays."""

    by: Way
    who: Name
    at_ms: Millis
    errors: tuple[str, ...]
