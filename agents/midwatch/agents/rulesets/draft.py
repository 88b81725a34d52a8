"""Shell: reads the rule and policy files as they are now into one bundle that may be published.

It reads presets, which midwatch ships, and user files. Where both define one name, the user file wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from midwatch.agents.policies.base import Policy
from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.agents.policies.oellm import RetryCounting
from midwatch.agents.rulesets.admission import admit_edit, divided, speeds_without_scan
from midwatch.agents.rulesets.bundles import apply_too_slow, combined, shadowed
from midwatch.agents.rulesets.content import bundle, bundle_hash
from midwatch.agents.rulesets.extensions import extensions_of
from midwatch.agents.rulesets.outcomes import Counts, read_counts
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
    """Files that were read without a mistake. `hash` is the hash of `record`.

    `files` are the user files. `read` are these with all files that they include or compose.
    """

    rules: tuple[Rule, ...]
    record: RuleBundle
    hash: str
    files: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def read_draft(
    settings: Settings, user_paths: Sequence[Path] | None = None, presets: Sequence[str] | None = None
) -> Draft:
    """The bundle of the settings. `user_paths` and `presets` replace those that the settings name.

    Raises:
        RuleErrors: every mistake in every file.
        ConfigurationError: a named file or preset does not exist.
    """
    paths = settings.rules.directories if user_paths is None else tuple(user_paths)
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
        policies.read(file)
    if settings.policy not in policies.by_name and settings.policy not in extensions.policies:
        policies.read(settings.policy)
    if errors:
        raise RuleErrors(errors)
    for name in policies.by_name.keys() & extensions.policies.keys():
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
        policies.by_name.values(),
        policies.files,
        any_line=any(each.any_line for each in bundles),
        foreign=extensions.named(),
        outcomes=_own_outcomes(settings.rules.outcomes),
    )
    notes = (*(note for each in bundles for note in each.notes), *shadowed(bundles), *policies.notes)
    files = _user_files(paths, policies)
    outcomes = () if settings.rules.outcomes is None else (str(settings.rules.outcomes.absolute()),)
    read = (*files, *(file for each in bundles for file in each.files), *outcomes)
    return Draft(rules, record, bundle_hash(record), files, read, tuple(dict.fromkeys(notes)))


def admitted(
    draft: Draft, too_slow: TooSlow, in_force: Iterable[str] = (), without: Speeds | None = None
) -> Draft:
    """The draft, without the slow rules where `too_slow` leaves them out.

    `in_force`: the patterns in use now, which need no second admission.
    `without`: the speeds that these had a while ago without their scan.

    Raises:
        RuleErrors: a pattern that RE2 refuses, or a rule that is too slow, with its cost and the remedy.
    """
    shipped, user_rules = divided(draft.rules)
    if not user_rules:
        return draft
    admission = admit_edit(shipped, user_rules, frozenset(in_force), without)
    kept, notes = apply_too_slow(admission.refused, user_rules, too_slow)
    if len(kept) == len(user_rules):
        return replace(draft, notes=(*draft.notes, *notes))
    names = {rule.name for rule in (*shipped, *kept)}
    rules = tuple(rule for rule in draft.rules if rule.name in names)
    plain = tuple(rule for rule in draft.record.rules if rule["name"] in names)
    record = replace(draft.record, rules=plain)
    return replace(draft, rules=rules, record=record, hash=bundle_hash(record), notes=(*draft.notes, *notes))


def _own_outcomes(file: Path | None) -> Counts | None:
    """The counts in the file that the settings name. Raises ConfigurationError if it cannot be read."""
    if file is None:
        return None
    try:
        return read_counts(file.read_bytes(), str(file))
    except OSError as error:
        raise ConfigurationError(
            f"the outcomes cannot be read: {error.strerror}",
            where=str(file),
            remedy="write them: midwatch outcomes --output FILE",
        ) from error


@dataclass(frozen=True, slots=True)
class Edit:
    """Files that were read without a mistake. `ready` is the draft that may be published.

    It is None where the draft is in force already, or where a rule is `refused`.
    """

    draft: Draft
    ready: Draft | None = None
    refused: RuleErrors | None = None


_prepared: dict[frozenset[str], Speeds] = {}
"""The speeds of the rules with these patterns, as `prepare` measured them."""


def prepare(
    policy: str, rules: RulesSettings, extensions: ExtensionSettings, patterns: frozenset[str]
) -> None:
    """Prepares a later `edit` in the same process, as far as that is possible before the edit."""
    shipped, user_rules = divided(
        read_draft(Settings(policy=policy, rules=rules, extensions=extensions)).rules
    )
    in_use = (*shipped, *(rule for rule in user_rules if rule.pattern in patterns))
    _prepared[patterns] = speeds_without_scan(in_use)


def edit(
    policy: str,
    rules: RulesSettings,
    extensions: ExtensionSettings,
    in_force: frozenset[str],
    patterns: frozenset[str],
) -> Edit:
    """The result of an edit of the files that these settings name.

    `in_force`: the hashes that mean no change. `patterns` are in use now, and need no second admission.
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
    """A shipped bundle. It cannot change while the process runs."""
    return load_bundle(name)


class _Policies:
    """Policies by name. A user policy replaces a shipped one.

    `names` maps each file to its policy's name. `files` does so only for the file that the settings name.
    """

    def __init__(self, settings: Settings, errors: list[LocatedError]) -> None:
        self.by_name: dict[str, Policy] = {name: load_policy(name) for name in shipped_policies()}
        self.files: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.notes: list[Note] = []
        self._named = settings.policy
        self._counting = RetryCounting(settings.rules.retries)
        self._errors = errors

    def read(self, file: str) -> None:
        if file in self.names:
            return
        try:
            policy = load_policy(file, self._counting)
        except RuleErrors as error:
            self._errors += error.errors
            return
        place = SourceLocation(file)
        if policy.name in self.names.values():
            what = f"policy {policy.name!r} is not used: another file has one of that name"
            self.notes.append(Note(NoteKind.WARNING, place, what, "Give it another name."))
            return
        if policy.name in shipped_policies() and policy != load_policy(policy.name):
            what = f"policy {policy.name!r} replaces the shipped one"
            self.notes.append(Note(NoteKind.CHANGED, place, what, "Give it another name to keep both."))
        self.notes += policy.notes
        self.by_name[policy.name] = replace(policy, notes=())
        self.names[file] = policy.name
        if file == self._named:
            self.files[file] = policy.name


def _user_files(paths: Iterable[Path], policies: _Policies) -> tuple[str, ...]:
    paths = tuple(paths)
    files = (*rule_sources(paths), *policies.names)
    return tuple(dict.fromkeys(str(Path(file).absolute()) for file in files))
