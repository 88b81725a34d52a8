"""Shell: which rules and policies a worker judges by, from the settings."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import cast

from midwatch.agents.incident.limits import Limits
from midwatch.agents.policies.base import Policy
from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.agents.policies.oellm import RetryCounting
from midwatch.rules.compiler import RuleSet, compile_rules
from midwatch.rules.loader import load_bundle
from midwatch.rules.model import Note, NoteKind, Rule
from midwatch.streams.records import Phase
from midwatch.streams.settings import Settings

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Watched:
    """Compiled rules and the hash they go by in every hit. `any_line`: every new line ends a silence."""

    rules: RuleSet
    hash: str
    any_line: bool = False
    notes: tuple[Note, ...] = ()


def watched_rules(names: tuple[str, ...], *, scan: bool = True) -> Watched:
    """The rules of presets, packs or files; a rule that several of them bring counts once.

    Without `scan` they are ready at once, which is right for a few megabytes of text.

    Raises:
        RuleErrors: everything wrong in them.
    """
    bundles = [load_bundle(name) for name in names]
    rules: dict[str, Rule] = {}
    for bundle in bundles:
        for rule in bundle.rules:
            rules.setdefault(rule.name, rule)
    compiled = compile_rules(rules.values(), scan=scan)
    return Watched(
        compiled,
        compiled.content_hash,
        any_line=any(bundle.any_line for bundle in bundles),
        notes=tuple(note for bundle in bundles for note in bundle.notes),
    )


def rules_of(settings: Settings) -> Watched:
    """The rules that the settings name: presets, then the user's own files."""
    watched = watched_rules(_names(settings))
    _tell(watched.notes)
    return watched


def _names(settings: Settings) -> tuple[str, ...]:
    own = (
        str(path)
        for directory in settings.rules.directories
        for path in (sorted(directory.glob("*.y*ml")) if directory.is_dir() else [directory])
    )
    return (*settings.rules.presets, *own)


def policies_of(settings: Settings) -> dict[str, Policy]:
    """Every shipped policy, and the one that the settings name if it is a file."""
    policies = {name: load_policy(name) for name in shipped_policies()}
    if settings.policy not in policies:
        own = load_policy(settings.policy, RetryCounting(settings.rules.retries))
        _tell(own.notes)
        policies[settings.policy] = own
    return policies


def _tell(notes: tuple[Note, ...]) -> None:
    """What was read of a user's own files goes to the log once, at the start."""
    for note in notes:
        _log.log(logging.INFO if note.kind is NoteKind.MOOT else logging.WARNING, "%s", note)


def limits_of(settings: Settings) -> Limits:
    """How long jobs may be silent: by the settings, above them by the bundles, above both by a job's spec."""
    silence = dict(settings.detect.limits.by_phase())
    for name in _names(settings):
        silence |= {cast(Phase, str(phase)): s for phase, s in load_bundle(name).silence.items()}
    return Limits(
        **silence,
        grace=settings.detect.settle_grace,
        settle_max=settings.detect.settle_max,
    )
