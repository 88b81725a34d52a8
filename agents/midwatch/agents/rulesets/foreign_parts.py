"""The foreign detectors and policies that a process has at hand, and which of them a bundle names. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from midwatch.agents.policies import POLICIES
from midwatch.agents.policies.base import Judge, Policy
from midwatch.agents.policies.foreign import ForeignPolicy, foreign_judge, foreign_policy
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.base import Detector, Detectors
from midwatch.streams.errors import NewerRecord
from midwatch.streams.records import ForeignParts

Part = TypeVar("Part", Detector[Any], ForeignPolicy)


@dataclass(frozen=True, slots=True)
class Extensions:
    """What the settings enable, by name. Of each the first version is the one that new bundles name.

    The other versions are asked for what an earlier bundle judges.
    """

    detectors: Mapping[str, tuple[Detector[Any], ...]] = field(default_factory=dict)
    policies: Mapping[str, tuple[ForeignPolicy, ...]] = field(default_factory=dict)

    def named(self) -> ForeignParts:
        """What a bundle made now says of them."""
        return ForeignParts(
            {name: parts[0].version for name, parts in self.detectors.items()},
            {name: parts[0].version for name, parts in self.policies.items()},
        )


NO_EXTENSIONS = Extensions()


def detectors_in(parts: ForeignParts, extensions: Extensions) -> Detectors:
    """Ours, then those that the bundle names, by name. Raises NewerRecord where one is not at hand."""
    found = {
        name: _at_hand("detector", name, version, extensions.detectors.get(name, ()))
        for name, version in sorted(parts.detectors.items())
    }
    return {**DETECTORS, **found}


def policies_in(parts: ForeignParts, extensions: Extensions) -> tuple[dict[str, Policy], dict[str, Judge]]:
    """The policies that the bundle names, and all judges. Raises NewerRecord where one is not at hand."""
    found = {
        name: _at_hand("policy", name, version, extensions.policies.get(name, ()))
        for name, version in sorted(parts.policies.items())
    }
    policies = {name: foreign_policy(part) for name, part in found.items()}
    return policies, {**POLICIES, **{name: foreign_judge(part) for name, part in found.items()}}


def _at_hand(what: str, name: str, version: str, parts: tuple[Part, ...]) -> Part:
    for part in parts:
        if part.version == version:
            return part
    group = {"detector": "detectors", "policy": "policies"}[what]
    here = f"version {parts[0].version} is" if parts else "it is not"
    raise NewerRecord(
        f"the bundle is judged with the {what} {name} of version {version}, and here {here} enabled",
        remedy=f"install the package that has that version, and name {name} in extensions.{group}",
    )
