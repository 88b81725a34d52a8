"""A bundle of the topic `rules` as values, and the content that its hash covers. Pure.

A record holds only the fields that differ from a rule's defaults. So a later midwatch, whose rules may have
more fields, reads an older bundle as the same one. A newer bundle may say more than this midwatch
understands. Then the part that was read has another hash than the bundle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, cast

import msgspec

from midwatch.agents.policies import POLICIES
from midwatch.agents.policies.base import Judge, Policy
from midwatch.agents.policies.reader import read_policy
from midwatch.agents.policies.writer import policy_text
from midwatch.agents.rulesets.foreign_parts import NO_EXTENSIONS, Extensions, detectors_in, policies_in
from midwatch.agents.rulesets.outcomes import NO_OUTCOMES, Counts, OwnOutcomes, own_outcomes
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.base import Detectors
from midwatch.rules.errors import RuleErrors
from midwatch.rules.model import Phase, Rule
from midwatch.streams.errors import NewerRecord
from midwatch.streams.records import ForeignParts, RuleBundle
from midwatch.streams.records import Phase as RecordPhase

_PLACE = "location"
"""A rule's place in its file is part of the record, but not of the hash."""


@dataclass(frozen=True, slots=True)
class Content:
    """The rules and policies of a bundle. Keys of `policies` are names, and file paths from the settings."""

    hash: str
    rules: tuple[Rule, ...]
    silence: Mapping[RecordPhase, float] = field(default_factory=dict)
    any_line: bool = False
    policies: Mapping[str, Policy] = field(default_factory=dict)
    detectors: Detectors = field(default_factory=lambda: DETECTORS)
    judges: Mapping[str, Judge] = field(default_factory=lambda: POLICIES)
    outcomes: OwnOutcomes = NO_OUTCOMES


def bundle(
    rules: Iterable[Rule],
    silence: Mapping[Phase, float],
    policies: Iterable[Policy],
    policy_files: Mapping[str, str],
    *,
    any_line: bool,
    foreign: ForeignParts | None = None,
    outcomes: Counts | None = None,
) -> RuleBundle:
    """The record of a bundle. `policy_files` maps paths to names of policies."""
    return RuleBundle(
        rules=tuple(_plain(rule) for rule in rules),
        silence={cast(RecordPhase, str(phase)): seconds for phase, seconds in silence.items()},
        any_line=any_line,
        policies={policy.name: policy_text(policy) for policy in policies},
        policy_files=policy_files,
        foreign=foreign if foreign is not None and foreign != ForeignParts() else msgspec.UNSET,
        outcomes=outcomes or msgspec.UNSET,
    )


def bundle_hash(record: RuleBundle) -> str:
    """SHA-256 (hex) of the bundle's content. Places in files and the order of mappings do not count."""
    hashed: dict[str, object] = {
        "rules": [{name: value for name, value in rule.items() if name != _PLACE} for rule in record.rules],
        "silence": {phase: float(seconds) for phase, seconds in record.silence.items()},
        "any_line": record.any_line,
        "policies": record.policies,
        "policy_files": record.policy_files,
    }
    if record.foreign:
        hashed["foreign"] = record.foreign
    if record.outcomes:
        hashed["outcomes"] = record.outcomes
    return hashlib.sha256(msgspec.json.encode(hashed, order="sorted")).hexdigest()


def content(hash_: str, record: RuleBundle, extensions: Extensions = NO_EXTENSIONS) -> Content:
    """The content of the bundle that was published under this hash.

    Raises:
        NewerRecord: this midwatch does not understand all of it, its hash is another one, or it names a
            foreign part that is not at hand.
    """
    try:
        rules = tuple(msgspec.convert(rule, type=Rule) for rule in record.rules)
        policies = {name: read_policy(name, text.encode()) for name, text in record.policies.items()}
        by_file = {path: policies[name] for path, name in record.policy_files.items()}
    except (msgspec.ValidationError, RuleErrors, KeyError, TypeError) as error:
        raise _not_understood(hash_, str(error)) from error
    read = RuleBundle(
        tuple(_plain(rule) for rule in rules),
        record.silence,
        record.any_line,
        record.policies,
        record.policy_files,
        record.foreign,
        record.outcomes,
    )
    if bundle_hash(read) != hash_:
        raise _not_understood(hash_, "the part that was read has another hash")
    parts = record.foreign or ForeignParts()
    foreign, judges = policies_in(parts, extensions)
    detectors = detectors_in(parts, extensions)
    policies |= by_file | foreign
    outcomes = own_outcomes(record.outcomes) if record.outcomes else NO_OUTCOMES
    return Content(hash_, rules, record.silence, record.any_line, policies, detectors, judges, outcomes)


def _not_understood(hash_: str, why: str) -> NewerRecord:
    return NewerRecord(
        f"the bundle of rules {hash_} cannot be used: {why}",
        remedy="upgrade this midwatch to the one that published it; until then the last good bundle stays",
    )


def _plain(rule: Rule) -> dict[str, Any]:
    whole: dict[str, Any] = msgspec.to_builtins(rule)
    return {name: value for name, value in whole.items() if not _is_default(name, getattr(rule, name))}


def _is_default(name: str, value: object) -> bool:
    return name in _DEFAULTS and _DEFAULTS[name] == value


def _defaults() -> dict[str, object]:
    defaults: dict[str, object] = {}
    for each in fields(Rule):
        if each.default is not MISSING:
            defaults[each.name] = each.default
        elif each.default_factory is not MISSING:
            defaults[each.name] = each.default_factory()
    return defaults


_DEFAULTS = _defaults()
