"""Converts a configuration of oellm-autoexp into a rule file and a policy file of midwatch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from midwatch.agents.policies.base import Policy
from midwatch.agents.policies.oellm import RetryCounting, policy_of
from midwatch.agents.policies.writer import policy_text
from midwatch.rules.files.writer import rules_text
from midwatch.rules.model import Note, NoteKind
from midwatch.rules.oellm.reading import Config, bundle_of, description_of, overridden

_KEPT = (NoteKind.NOT_EXECUTED, NoteKind.CHANGED, NoteKind.WARNING)


@dataclass(frozen=True, slots=True)
class Converted:
    """The text of both files. A text is "" where the configuration says nothing about it."""

    rules: str
    policy: str
    notes: tuple[Note, ...]


def convert(
    config: Config,
    shipped: Mapping[str, bytes],
    counting: RetryCounting = RetryCounting.DOCUMENTED,
    policies: Mapping[str, Policy] | None = None,
) -> Converted:
    """Both files of a configuration. `shipped` and `policies` are midwatch's presets, for missing files.

    `counting` turns `max_retries` into a number of restarts. The notes become comments above the rules.
    Raises RuleErrors.
    """
    preset = None
    if config.policies is None and config.policy is not None:
        preset = (policies or {}).get(config.policy.name)
    if preset is not None:
        policy = replace(preset, name=config.name, notes=config.notes)
    else:
        policy = policy_of(config, counting)
    has_policy = preset is not None or config.policies is not None or (config.watches and not config.policy)
    rules = ""
    if config.watches or config.presets:
        rules = _comments(config, policy.notes) + rules_text(
            config.rules,
            description=description_of(config),
            include=config.presets,
            exclude=overridden(config, shipped),
            silence=bundle_of(config, shipped).silence,
            any_line=config.any_line,
        )
    return Converted(rules, policy_text(policy) if has_policy else "", policy.notes)


def _comments(config: Config, notes: tuple[Note, ...]) -> str:
    lines = (f"# {' '.join(str(note).split())}\n" for note in notes if note.kind in _KEPT)
    return f"# Converted from {config.root}\n{''.join(lines)}"
