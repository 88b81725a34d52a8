"""Shell: which rules and policies a worker judges by, from the settings."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

from midwatch.agents.policies.base import Policy
from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.agents.policies.oellm import RetryCounting
from midwatch.agents.rulesets.admission import admit_user_rules, divided, refusals, shipped_places
from midwatch.agents.rulesets.user_files import policy_sources, rule_sources
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.rules.errors import RuleErrors
from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.admission import Measure, SlowRule
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.model import Bundle, Note, NoteKind, Rule
from midwatch.streams.settings.kinds import TooSlow
from midwatch.streams.settings.schema import Settings

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompiledBundle:
    """Compiled rules and the hash they go by in every hit. `any_line`: every new line ends a silence."""

    rules: RuleSet
    hash: str
    any_line: bool = False
    notes: tuple[Note, ...] = ()


def watched_rules(names: tuple[str, ...], *, scan: bool = True) -> CompiledBundle:
    """The rules of presets, packs or files; a rule that several of them bring counts once.

    Without `scan` they are ready at once, which is right for a few megabytes of text.

    Raises:
        RuleErrors: everything wrong in them.
    """
    bundles = [load_bundle(name) for name in names]
    shipped, own = divided(combined(bundles))
    return _watched(bundles, compile_rules((*shipped, *own), scan=scan))


def combined(bundles: Iterable[Bundle]) -> tuple[Rule, ...]:
    """The rules of all bundles, each name once: a person's own stands in place of a shipped one, and of
    several own ones the first stands."""
    ours, rules = shipped_places(), dict[str, Rule]()
    for rule in (rule for bundle in bundles for rule in bundle.rules):
        other = rules.setdefault(rule.name, rule)
        if other.location.file in ours and rule.location.file not in ours:
            rules[rule.name] = rule
    return tuple(rules.values())


def shadowed(bundles: Iterable[Bundle]) -> tuple[Note, ...]:
    """A note for each rule that is not watched because another one of its name, which says otherwise, is."""
    bundles, ours = tuple(bundles), shipped_places()
    standing = {rule.name: rule for rule in combined(bundles)}
    notes: dict[Note, None] = {}
    for rule in (rule for bundle in bundles for rule in bundle.rules):
        other = standing[rule.name]
        if replace(other, location=rule.location) == rule:
            continue
        if rule.location.file in ours:
            what = f"rule {rule.name!r} stands in place of the shipped one at {rule.location}"
            note = Note(NoteKind.CHANGED, other.location, what, "Give it another name to watch both.")
        else:
            what = f"rule {rule.name!r} is not watched beside the one of that name at {other.location}"
            note = Note(NoteKind.WARNING, rule.location, what, "Give it another name.")
        notes[note] = None
    return tuple(notes)


def _watched(bundles: Iterable[Bundle], compiled: RuleSet, notes: tuple[Note, ...] = ()) -> CompiledBundle:
    bundles = tuple(bundles)
    return CompiledBundle(
        compiled,
        compiled.content_hash,
        any_line=any(bundle.any_line for bundle in bundles),
        notes=(*(note for bundle in bundles for note in bundle.notes), *shadowed(bundles), *notes),
    )


def rules_of(settings: Settings, measure: Measure | None = None) -> CompiledBundle:
    """The rules that the settings name: presets, then the user's own files, whose rules are measured first.

    Raises:
        RuleErrors: everything wrong in them, and each own rule that slows the watch down, unless
            `rules.too_slow` says otherwise.
    """
    user_files = rule_sources(settings.rules.directories)
    bundles = [load_bundle(name) for name in (*settings.rules.presets, *user_files)]
    shipped, own = divided(combined(bundles))
    admitted = admit_user_rules(shipped, own, measure)
    kept, notes = let_in(admitted.refused, own, settings.rules.too_slow)
    watched = _watched(bundles, compile_rules((*shipped, *kept)), notes)
    tell(watched.notes)
    return watched


def let_in(
    refused: Iterable[SlowRule], own: Iterable[Rule], way: TooSlow
) -> tuple[tuple[Rule, ...], tuple[Note, ...]]:
    """The own rules that are watched though some are too slow, and what is told of these.

    Raises RuleErrors where the settings refuse them.
    """
    refused = tuple(refused)
    if refused and way == "refuse":
        raise RuleErrors(refusals(refused))
    done = "watched all the same" if way == "accept" else "left out of the watch"
    left_out = set() if way == "accept" else {refusal.rule.name for refusal in refused}
    kept = tuple(rule for rule in own if rule.name not in left_out)
    return kept, tuple(_insisted(refusal, done) for refusal in refused)


def _insisted(refusal: SlowRule, done: str) -> Note:
    error = refusal.error()
    return Note(NoteKind.WARNING, error.location, f"{error.what}; it is {done}", error.remedy)


def policies_of(settings: Settings) -> dict[str, Policy]:
    """Every shipped policy and every own one, by its name; the one of the settings also as they name it."""
    counting = RetryCounting(settings.rules.retries)
    policies = {name: load_policy(name) for name in shipped_policies()}
    for file in policy_sources(settings.rules.directories):
        own = load_policy(file, counting)
        policies[own.name] = own
    if settings.policy not in policies and settings.policy not in settings.extensions.policies:
        named = load_policy(settings.policy, counting)
        tell(named.notes)
        policies[settings.policy] = named
    return policies


def tell(notes: Iterable[Note]) -> None:
    """What was read of a user's own files goes to the log once, when it is taken."""
    for note in notes:
        _log.log(logging.INFO if note.kind is NoteKind.MOOT else logging.WARNING, "%s", note)


def limits_of(settings: Settings) -> WatchLimits:
    """How long jobs may be silent by the settings; above them stands the bundle in force, above both a
    job's spec."""
    return WatchLimits(
        **settings.detect.limits.by_phase(),
        grace=settings.detect.settle_grace,
        settle_max=settings.detect.settle_max,
    )
