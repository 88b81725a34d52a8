"""Shell: loads the rules and policies that the settings name for a worker."""

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
from midwatch.rules.loader import load_bundle, shipped_plan
from midwatch.rules.matching.admission import Measure, SlowRule
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.model import Bundle, Note, NoteKind, Rule
from midwatch.streams.settings.kinds import TooSlow
from midwatch.streams.settings.schema import Settings

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompiledBundle:
    """Compiled rules and the hash that every hit names. `any_line`: every new line ends a silence."""

    rules: RuleSet
    hash: str
    any_line: bool = False
    notes: tuple[Note, ...] = ()


def watched_rules(names: tuple[str, ...], *, scan: bool = True) -> CompiledBundle:
    """The rules of presets, packs or files. A rule that several of them hold counts once.

    Without `scan` the rules are ready at once, which suits a few megabytes of text.

    Raises:
        RuleErrors: every mistake in them.
    """
    bundles = [load_bundle(name) for name in names]
    shipped, user_rules = divided(combined(bundles))
    known = shipped_plan() if scan else None
    return _watched(bundles, compile_rules((*shipped, *user_rules), scan=scan, known=known))


def combined(bundles: Iterable[Bundle]) -> tuple[Rule, ...]:
    """The rules of all bundles, each name once. A user rule replaces a shipped one of its name.

    Of several user rules of one name the first stays.
    """
    shipped, rules = shipped_places(), dict[str, Rule]()
    for rule in (rule for bundle in bundles for rule in bundle.rules):
        other = rules.setdefault(rule.name, rule)
        if other.location.file in shipped and rule.location.file not in shipped:
            rules[rule.name] = rule
    return tuple(rules.values())


def shadowed(bundles: Iterable[Bundle]) -> tuple[Note, ...]:
    """A note for each rule that another, different rule of its name replaces."""
    bundles, shipped = tuple(bundles), shipped_places()
    used = {rule.name: rule for rule in combined(bundles)}
    notes: dict[Note, None] = {}
    for rule in (rule for bundle in bundles for rule in bundle.rules):
        other = used[rule.name]
        if replace(other, location=rule.location) == rule:
            continue
        if rule.location.file in shipped:
            what = f"rule {rule.name!r} replaces the shipped one at {rule.location}"
            note = Note(NoteKind.CHANGED, other.location, what, "Give it another name to use both.")
        else:
            what = f"rule {rule.name!r} is not used: a rule of that name is at {other.location}"
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
    """The rules that the settings name: presets, then user files. User rules are measured first.

    Raises:
        RuleErrors: every mistake in them, and each user rule that is too slow, unless `rules.too_slow` says
            otherwise.
    """
    user_files = rule_sources(settings.rules.directories)
    bundles = [load_bundle(name) for name in (*settings.rules.presets, *user_files)]
    shipped, user_rules = divided(combined(bundles))
    admitted = admit_user_rules(shipped, user_rules, measure)
    kept, notes = apply_too_slow(admitted.refused, user_rules, settings.rules.too_slow)
    watched = _watched(bundles, compile_rules((*shipped, *kept), known=shipped_plan()), notes)
    log_notes(watched.notes)
    return watched


def apply_too_slow(
    refused: Iterable[SlowRule], user_rules: Iterable[Rule], setting: TooSlow
) -> tuple[tuple[Rule, ...], tuple[Note, ...]]:
    """The user rules that stay, and a note on each slow one. `setting` is `rules.too_slow`.

    Raises RuleErrors where the setting refuses slow rules.
    """
    refused = tuple(refused)
    if refused and setting == "refuse":
        raise RuleErrors(refusals(refused))
    result = "used nevertheless" if setting == "accept" else "left out"
    left_out = set() if setting == "accept" else {refusal.rule.name for refusal in refused}
    kept = tuple(rule for rule in user_rules if rule.name not in left_out)
    return kept, tuple(_slow_note(refusal, result) for refusal in refused)


def _slow_note(refusal: SlowRule, result: str) -> Note:
    error = refusal.error()
    return Note(NoteKind.WARNING, error.location, f"{error.what}; it is {result}", error.remedy)


def policies_of(settings: Settings) -> dict[str, Policy]:
    """All shipped and user policies by name. The settings' policy is also there under their name for it."""
    counting = RetryCounting(settings.rules.retries)
    policies = {name: load_policy(name) for name in shipped_policies()}
    for file in policy_sources(settings.rules.directories):
        policy = load_policy(file, counting)
        policies[policy.name] = policy
    if settings.policy not in policies and settings.policy not in settings.extensions.policies:
        named = load_policy(settings.policy, counting)
        log_notes(named.notes)
        policies[settings.policy] = named
    return policies


def log_notes(notes: Iterable[Note]) -> None:
    """Logs the notes on user files. Call it once, when the files come into use."""
    for note in notes:
        _log.log(logging.INFO if note.kind is NoteKind.MOOT else logging.WARNING, "%s", note)


def limits_of(settings: Settings) -> WatchLimits:
    """The silence limits of the settings. The bundle in force overrides them, a job's spec overrides both."""
    return WatchLimits(
        **settings.detect.limits.by_phase(),
        grace=settings.detect.settle_grace,
        settle_max=settings.detect.settle_max,
    )
