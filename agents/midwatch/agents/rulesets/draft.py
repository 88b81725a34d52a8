"""Shell: rules and policies as files say them now, as one bundle that may be published.

What is read are presets, which midwatch ships, and a person's own files; the latter win where both say
something of one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from midwatch.agents.policies.base import Policy
from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.agents.policies.oellm import RetryCounting
from midwatch.agents.rulesets.admission import admit_edit, admit_user_rules, divided, speeds_without_scan
from midwatch.agents.rulesets.bundles import combined, let_in, shadowed
from midwatch.agents.rulesets.content import bundle, bundle_hash
from midwatch.agents.rulesets.extensions import extensions_of
from midwatch.agents.rulesets.user_files import YAML, policy_sources, rule_sources
from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.admission import Speeds
from midwatch.rules.model import Bundle, Note, NoteKind, Phase, Rule, SourceLocation
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records import RuleBundle
from midwatch.streams.settings.kinds import TooSlow
from midwatch.streams.settings.schema import ExtensionSettings, RulesSettings, Settings


@dataclass(frozen=True, slots=True)
class Draft:
    """Files that were read without a mistake. `hash` is that of the record; `files` are a person's own, and
    `read` these with all that they include or compose."""

    rules: tuple[Rule, ...]
    record: RuleBundle
    hash: str
    files: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def read_draft(
    settings: Settings, own: Sequence[Path] | None = None, presets: Sequence[str] | None = None
) -> Draft:
    """The bundle of the settings; `own` and `presets` stand in place of those that they name.

    Raises:
        RuleErrors: every mistake in every file.
        ConfigurationError: something named is not there.
    """
    paths = settings.rules.directories if own is None else tuple(own)
    names = (*(settings.rules.presets if presets is None else presets), *rule_sources(paths))
    extensions = extensions_of(settings.extensions)
    errors: list[LocatedError] = []
    bundles: list[Bundle] = []
    for name in names:
        try:
            bundles.append(load_bundle(name) if name.endswith(YAML) else _shipped(name))
        except RuleErrors as error:
            errors += error.errors
    policies = _Policies(settings, errors)
    for file in policy_sources(paths):
        policies.take(file)
    if settings.policy not in policies.known and settings.policy not in extensions.policies:
        policies.take(settings.policy)
    if errors:
        raise RuleErrors(errors)
    for name in policies.known.keys() & extensions.policies.keys():
        raise ConfigurationError(
            f"a policy file and an installed package both call a policy {name!r}",
            where="extensions.policies",
            remedy="give the one in the file another name",
        )
    silence: dict[Phase, float] = {}
    for each in bundles:
        silence |= each.silence
    rules = combined(bundles)
    record = bundle(
        rules,
        silence,
        policies.known.values(),
        policies.files,
        any_line=any(each.any_line for each in bundles),
        foreign=extensions.named(),
    )
    notes = (*(note for each in bundles for note in each.notes), *shadowed(bundles), *policies.notes)
    files = _user_files(paths, policies)
    read = (*files, *(file for each in bundles for file in each.files))
    return Draft(rules, record, bundle_hash(record), files, read, tuple(dict.fromkeys(notes)))


def admitted(
    draft: Draft, way: TooSlow, in_force: Iterable[str] | None = None, without: Speeds | None = None
) -> Draft:
    """The draft, or what is left of it where the settings leave rules out that are too slow.

    `in_force`: the patterns that are watched now, and need no second admission; None measures all. `without`:
    how fast these were a while ago, without their scan.

    Raises:
        RuleErrors: a pattern that RE2 refuses, or a rule that is too slow, with its cost and the remedy.
    """
    shipped, own = divided(draft.rules)
    if not own:
        return draft
    if in_force is None:
        done = admit_user_rules(shipped, own)
    else:
        done = admit_edit(shipped, own, frozenset(in_force), without)
    kept, notes = let_in(done.refused, own, way)
    if len(kept) == len(own):
        return replace(draft, notes=(*draft.notes, *notes))
    names = {rule.name for rule in (*shipped, *kept)}
    rules = tuple(rule for rule in draft.rules if rule.name in names)
    plain = tuple(rule for rule in draft.record.rules if rule["name"] in names)
    record = replace(draft.record, rules=plain)
    return replace(draft, rules=rules, record=record, hash=bundle_hash(record), notes=(*draft.notes, *notes))


@dataclass(frozen=True, slots=True)
class Edit:
    """Files that were read without a mistake. `ready` is what may be published of them: None where it is in
    force already, or where a rule is `refused`."""

    draft: Draft
    ready: Draft | None = None
    refused: RuleErrors | None = None


_prepared: dict[frozenset[str], Speeds] = {}
"""How fast the rules of these patterns are, as `prepare` found."""


def prepare(
    policy: str, rules: RulesSettings, extensions: ExtensionSettings, patterns: frozenset[str]
) -> None:
    """What `edit` will need in the same process, as far as it is known before the edit is made."""
    shipped, own = divided(read_draft(Settings(policy=policy, rules=rules, extensions=extensions)).rules)
    known = (*shipped, *(rule for rule in own if rule.pattern in patterns))
    _prepared[patterns] = speeds_without_scan(known)


def edit(
    policy: str,
    rules: RulesSettings,
    extensions: ExtensionSettings,
    in_force: frozenset[str],
    patterns: frozenset[str],
) -> Edit:
    """What an edit of the files that these settings name comes to. `in_force`: hashes that are no change;
    `patterns` are watched now, and need no second admission.

    Raises as `read_draft`.
    """
    draft = read_draft(Settings(policy=policy, rules=rules, extensions=extensions))
    if draft.hash in in_force:
        return Edit(draft)
    try:
        return Edit(draft, admitted(draft, rules.too_slow, patterns, _prepared.get(patterns)))
    except RuleErrors as error:
        return Edit(draft, refused=error)


@cache
def _shipped(name: str) -> Bundle:
    """What comes with midwatch stays what it is while a process runs."""
    return load_bundle(name)


class _Policies:
    """Policies by name, own ones above shipped ones. `taken` maps files to names, `files` does so for the one
    file that the settings name as everybody's policy."""

    def __init__(self, settings: Settings, errors: list[LocatedError]) -> None:
        self.known: dict[str, Policy] = {name: load_policy(name) for name in shipped_policies()}
        self.files: dict[str, str] = {}
        self.taken: dict[str, str] = {}
        self.notes: list[Note] = []
        self._named = settings.policy
        self._counting = RetryCounting(settings.rules.retries)
        self._errors = errors

    def take(self, file: str) -> None:
        if file in self.taken:
            return
        try:
            policy = load_policy(file, self._counting)
        except RuleErrors as error:
            self._errors += error.errors
            return
        place = SourceLocation(file)
        if policy.name in self.taken.values():
            what = f"policy {policy.name!r} is not taken beside the one of that name"
            self.notes.append(Note(NoteKind.WARNING, place, what, "Give it another name."))
            return
        if policy.name in shipped_policies() and policy != load_policy(policy.name):
            what = f"policy {policy.name!r} stands in place of the shipped one"
            self.notes.append(Note(NoteKind.CHANGED, place, what, "Give it another name to keep both."))
        self.notes += policy.notes
        self.known[policy.name] = replace(policy, notes=())
        self.taken[file] = policy.name
        if file == self._named:
            self.files[file] = policy.name


def _user_files(paths: Iterable[Path], policies: _Policies) -> tuple[str, ...]:
    paths = tuple(paths)
    files = (*rule_sources(paths), *policies.taken)
    return tuple(dict.fromkeys(str(Path(file).absolute()) for file in files))
