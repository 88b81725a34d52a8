"""Shell: which rules and policies a worker judges by, from the settings."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from midwatch.agents.incident.limits import Limits
from midwatch.agents.policies.base import Policy
from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.agents.policies.oellm import RetryCounting
from midwatch.agents.rule_admission import admit_own, divided, refusals
from midwatch.rules.admission import Measure, Refusal
from midwatch.rules.compiler import RuleSet, compile_rules
from midwatch.rules.errors import RuleErrors
from midwatch.rules.loader import load_bundle
from midwatch.rules.model import Bundle, Note, NoteKind, Rule
from midwatch.streams.records import Phase
from midwatch.streams.settings import Settings

POLICY_ENDINGS = (".policy.yaml", ".policy.yml")
"""A policy may lie beside the rules that it belongs to; `midwatch rules convert` writes such pairs."""
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
    shipped, own = divided(combined(bundles))
    return _watched(bundles, compile_rules((*shipped, *own), scan=scan))


def combined(bundles: Iterable[Bundle]) -> tuple[Rule, ...]:
    """The rules of all bundles, each name once: the first stands."""
    rules: dict[str, Rule] = {}
    for bundle in bundles:
        for rule in bundle.rules:
            rules.setdefault(rule.name, rule)
    return tuple(rules.values())


def shadowed(bundles: Iterable[Bundle]) -> tuple[Note, ...]:
    """A note for each rule that is not watched because another one of its name came first."""
    first: dict[str, Rule] = {}
    notes: list[Note] = []
    for rule in (rule for bundle in bundles for rule in bundle.rules):
        other = first.setdefault(rule.name, rule)
        if other.location != rule.location:
            what = f"rule {rule.name!r} is not watched beside the one of that name at {other.location}"
            notes.append(Note(NoteKind.WARNING, rule.location, what, "Give it another name."))
    return tuple(notes)


def _watched(bundles: Iterable[Bundle], compiled: RuleSet, notes: tuple[Note, ...] = ()) -> Watched:
    bundles = tuple(bundles)
    return Watched(
        compiled,
        compiled.content_hash,
        any_line=any(bundle.any_line for bundle in bundles),
        notes=(*(note for bundle in bundles for note in bundle.notes), *shadowed(bundles), *notes),
    )


def rules_of(settings: Settings, measure: Measure | None = None) -> Watched:
    """The rules that the settings name: presets, then the user's own files, whose rules are measured first.

    Raises:
        RuleErrors: everything wrong in them, and each own rule that slows the watch down, unless
            `rules.too_slow` says otherwise.
    """
    bundles = [load_bundle(name) for name in _names(settings)]
    shipped, own = divided(combined(bundles))
    admitted = admit_own(shipped, own, measure)
    way = settings.rules.too_slow
    if admitted.refused and way == "refuse":
        raise RuleErrors(refusals(admitted.refused))
    done = "watched all the same" if way == "accept" else "left out of the watch"
    notes = tuple(_insisted(refusal, done) for refusal in admitted.refused)
    compiled = compile_rules((*shipped, *own)) if notes and way == "accept" else admitted.rules
    watched = _watched(bundles, compiled, notes)
    _tell(watched.notes)
    return watched


def _insisted(refusal: Refusal, done: str) -> Note:
    error = refusal.error()
    return Note(NoteKind.WARNING, error.location, f"{error.what}; it is {done}", error.remedy)


def _names(settings: Settings) -> tuple[str, ...]:
    own = (
        str(path)
        for directory in settings.rules.directories
        for path in (sorted(directory.glob("*.y*ml")) if directory.is_dir() else [directory])
        if not path.name.endswith(POLICY_ENDINGS)
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
