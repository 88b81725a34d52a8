"""A configuration of oellm-autoexp as a policy. Pure.

The first two generations have restart policies by mode. The others have events with actions and conditions.
No generation undoes a person's cancel. What a file says of cancelled jobs counts for all other cancels.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from midwatch.agents.policies.base import Clause, ClauseKind, Guard, Policy, PolicyMode
from midwatch.agents.policies.oellm_conditions import NEVER, ConditionScope, all_of
from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.fields import Fields
from midwatch.rules.model import Note, NoteKind, Role, SourceLocation
from midwatch.rules.oellm.actions import Action, ActionKind
from midwatch.rules.oellm.events import PatternType
from midwatch.rules.oellm.generation import SchemaGeneration
from midwatch.rules.oellm.meaning import rule_name
from midwatch.rules.oellm.reading import Config, description_of
from midwatch.streams.records import Action as PolicyAction
from midwatch.streams.strict_yaml import YamlNode

_FAILURES = (PolicyMode.CRASH, PolicyMode.STALL, PolicyMode.TIMEOUT)
_POLICY_ACTION: dict[ActionKind, PolicyAction] = {
    ActionKind.RESTART: "restart",
    ActionKind.FINISH: "stop",
    ActionKind.CANCEL: "cancel",
}
_SELECTIVE_RETRIES = 3


class RetryCounting(StrEnum):
    """What `max_retries: N` allows.

    As documented: N restarts after each mode. Compatible with their code: one counter for all modes counts
    attempts from 1 and stops at N. So it allows N - 1 restarts.
    """

    DOCUMENTED = "documented"
    COMPAT = "compat"


class _OellmDefault(StrEnum):
    RESTART = "restart"
    STOP = "stop"


def policy_of(config: Config, counting: RetryCounting = RetryCounting.DOCUMENTED) -> Policy:
    """The policy of the configuration. Without a restart policy in it, no job is ever restarted.

    Raises RuleErrors.
    """
    notes = list(config.notes)
    errors: list[LocatedError] = []
    if config.generation <= SchemaGeneration.STATES:
        clauses = _Implementations(config, counting, errors, notes).clauses()
    else:
        clauses = _guarded(config, notes)
    if errors:
        raise RuleErrors(errors)
    restarts = any(clause.kind is not ClauseKind.NEVER for clause in clauses.values())
    if restarts:
        what = "midwatch never undoes a person's cancel; other cancels are judged as this file says"
        notes.append(Note(NoteKind.CHANGED, SourceLocation(config.root), what))
    elif config.policies is None:
        what = "nothing in this file asks for a restart: the watch only reports"
        notes.append(Note(NoteKind.CHANGED, SourceLocation(config.root), what))
    return Policy(
        name=config.name,
        clauses=clauses,
        description=description_of(config),
        notes=tuple(dict.fromkeys(notes)),
    )


class _Implementations:
    """`policies:` of the first two generations."""

    def __init__(
        self, config: Config, counting: RetryCounting, errors: list[LocatedError], notes: list[Note]
    ) -> None:
        self.config, self.counting = config, counting
        self.errors, self.notes = errors, notes

    def clauses(self) -> dict[PolicyMode, Clause]:
        found: dict[PolicyMode, Clause] = {}
        for node in self.config.policies.items if self.config.policies is not None else []:
            fields = Fields(node, self.errors, "a restart policy")
            mode = fields.choice("mode", PolicyMode)
            inner = fields.node("implementation", required=True)
            fields.done()
            if mode is None or inner is None:
                continue
            found[mode] = self.clause(inner)
            if mode is PolicyMode.SUCCESS and found[mode].kind is not ClauseKind.NEVER:
                what = "midwatch never restarts a job that ended in success"
                self.notes.append(Note(NoteKind.CHANGED, node.location, what))
        return found

    def clause(self, node: YamlNode) -> Clause:
        fields = Fields(node, self.errors, "`implementation`")
        name = fields.text("class_name", required=True)
        match name:
            case "NoRestartPolicy":
                clause = Clause(ClauseKind.NEVER, stop_reason=fields.text("message"))
            case "AlwaysRestartPolicy":
                clause = Clause(ClauseKind.ALWAYS, restart_reason=fields.text("reason"))
                clause = self.limited(clause, fields, None)
            case "SelectiveRestartPolicy":
                clause = self.limited(self.selective(fields), fields, _SELECTIVE_RETRIES)
            case _:
                remedy = "Known: NoRestartPolicy, AlwaysRestartPolicy, SelectiveRestartPolicy."
                fields.complain(fields.place("class_name"), f"there is no policy {name!r}", remedy)
                return Clause(ClauseKind.NEVER)
        fields.done()
        return clause

    def selective(self, fields: Fields) -> Clause:
        default = fields.choice("default_action", _OellmDefault) or _OellmDefault.STOP
        return Clause(
            ClauseKind.SELECTIVE,
            default_action="restart" if default is _OellmDefault.RESTART else "stop",
            restart_on_error_types=self.texts(fields, "restart_on_error_types"),
            restart_on_subsystems=self.texts(fields, "restart_on_subsystems"),
            restart_on_signals=tuple(
                rule_name(name, {}) for name in self.texts(fields, "restart_on_signals")
            ),
            exclude_error_types=self.texts(fields, "exclude_error_types"),
            restart_reason=fields.text("restart_reason"),
            stop_reason=fields.text("stop_reason"),
        )

    def texts(self, fields: Fields, key: str) -> tuple[str, ...]:
        return tuple(text for text, _ in fields.texts(key))

    def limited(self, clause: Clause, fields: Fields, default: int | None) -> Clause:
        entry = fields.entries.get("max_retries")
        retries = fields.whole_number("max_retries") if entry is not None else default
        if retries is None:
            what = "without `max_retries` a job may be restarted for ever"
            self.notes.append(Note(NoteKind.WARNING, fields.location, what, "Write for example 3."))
            return replace(clause, max_restarts=None)
        if self.counting is RetryCounting.COMPAT:
            return replace(clause, max_restarts=max(retries - 1, 0), across_modes=True)
        return replace(clause, max_restarts=retries)


def _guarded(config: Config, notes: list[Note]) -> dict[PolicyMode, Clause]:
    """The guards of all events, in the order of the lists: log events before state events."""
    by_name = {rule.name: rule for rule in config.rules}
    found: dict[PolicyMode, list[Guard]] = {mode: [] for mode in _FAILURES}
    for event, name in zip(config.events, config.names, strict=True):
        rule = by_name.get(name)
        scope = ConditionScope((rule,) if rule else (), event.metadata, of_one_rule=True)
        silent = event.pattern_type is PatternType.INACTIVITY
        for action in event.actions:
            guard = _guard(action, scope, notes)
            for mode in (PolicyMode.STALL,) if silent else _FAILURES:
                if guard is not None and (silent or (rule is not None and rule.role is Role.CAUSE)):
                    found[mode].append(replace(guard, rules=() if silent else (name,)))
    newest = config.generation is SchemaGeneration.TRANSITIONS
    for state in config.state_events:
        scope = ConditionScope(config.rules, state.metadata, of_one_rule=False)
        for action in state.actions:
            guard = _guard(action, scope, notes)
            if guard is None:
                continue
            if newest:
                guard = replace(guard, states=(state.old, state.new))
            for mode in _FAILURES if newest else _modes(state.name):
                found[mode].append(guard)
    return {
        mode: Clause(ClauseKind.GUARDED, max_restarts=None, guards=tuple(guards))
        for mode, guards in found.items()
        if any(guard.action == "restart" for guard in guards) or (newest and guards)
    }


def _modes(name: str) -> tuple[PolicyMode, ...]:
    return tuple(mode for mode in _FAILURES if mode.value == name)


def _guard(action: Action, scope: ConditionScope, notes: list[Note]) -> Guard | None:
    if action.kind not in _POLICY_ACTION:
        return None
    condition = all_of(action.conditions, scope, notes)
    if condition == NEVER:
        what = f"{action.class_name} is never reached: its condition contradicts the event"
        notes.append(Note(NoteKind.WARNING, action.location, what))
        return None
    if action.kind is ActionKind.RESTART and not _bounded(action):
        what = "this restart has no limit: a job that always fails is restarted for ever"
        remedy = "Guard it with MaxAttemptsCondition, or give the job `midwatch run --max-restarts`."
        notes.append(Note(NoteKind.WARNING, action.location, what, remedy))
    if action.kind is ActionKind.CANCEL:
        what = (
            "a line alone ends no running job: midwatch commands this cancel once the job is silent while its"
            " nodes send heartbeats; once the job has ended, the cancel is a stop"
        )
        notes.append(Note(NoteKind.CHANGED, action.location, what))
    return Guard(_POLICY_ACTION[action.kind], condition=condition, reason=action.reason)


def _bounded(action: Action) -> bool:
    return any("MaxAttemptsCondition" in str(node) for node in action.conditions)
