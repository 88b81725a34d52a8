"""Every key of the four generations, one by one: what a file with it says that one without it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.policies.oellm import policy_of
from midwatch.rules.model import NoteKind, SourceLocation
from midwatch.rules.oellm.reading import bundle_of, read_config

NOWHERE = SourceLocation("-")

MONITOR = """class_name: SlurmLogMonitor
@log_signals:
  - {name: a, pattern: 'a (?P<n>[0-9]+)', state: {class_name: CrashState}, metadata: {error_type: nccl}}
"""
OLDEST = """log_signals:
  - {name: a, pattern: 'a (?P<n>[0-9]+)', action: note, mode: crash@}
"""
SIGNAL = """log_signals:
  - {name: a, pattern: 'a (?P<n>[0-9]+)', state: {class_name: CrashState}@}
"""
ALWAYS = "policies:\n  - mode: crash\n    implementation: {class_name: AlwaysRestartPolicy@}\n"
SELECTIVE = "policies:\n  - mode: crash\n    implementation: {class_name: SelectiveRestartPolicy@}\n"
NO = "policies:\n  - mode: crash\n    implementation: {class_name: NoRestartPolicy@}\n"
SECOND = """log_events:
  - name: a
    pattern: lost
    state: {class_name: CrashState}
    metadata: {error_type: nccl}
    actions: [@]
"""
SECOND_STATE = """log_events: [{name: a, pattern: lost, state: {class_name: CrashState}}]
state_events:
  - {name: stall, state: {class_name: StalledState}@}
"""
GUARDED = """log_events:
  - name: a
    pattern: lost
    state: {class_name: CrashState}
    actions:
      - class_name: EventAction
        conditions: [@]
        action: {class_name: RestartAction}
"""
JOB = """job:
  log_path: x.log
  @
  log_events:
    - {name: a, pattern: lost, action: {class_name: RestartAction}}
"""
EVENT = """job:
  log_path: x.log
  log_events:
    - {name: a, pattern: lost, action: {class_name: RestartAction}@}
"""
ACTION = """job:
  log_path: x.log
  log_events:
    - {name: a, pattern: lost, action: {@}}
"""
QUIET = """job:
  log_path: x.log
  @log_events:
    - {name: quiet, pattern_type: inactivity, action: {class_name: RestartAction}#}
"""
CHANGE = """job:
  log_path: x.log
  log_events: [{name: a, pattern: lost}]
  state_events:
    - {name: s@}
"""


def said(text: str) -> dict[str, object]:
    """What the watch takes from a file, part by part."""
    config = read_config("mine.yaml", {"mine.yaml": text.encode()})
    policy = policy_of(config)
    bundle = bundle_of(config, {})
    notes = {note.kind: set[str]() for note in policy.notes}
    for note in policy.notes:
        notes[note.kind].add(note.what)
    parts: dict[str, object] = {
        "rules": [replace(rule, location=NOWHERE, metadata={}) for rule in bundle.rules],
        "metadata": [dict(rule.metadata) for rule in bundle.rules],
        "silence": (dict(bundle.silence), bundle.any_line),
        "policy": policy.clauses,
    }
    return parts | {str(kind): notes.get(kind, set()) for kind in NoteKind if kind is not NoteKind.ARMING}


def effect(base: str, without: str, with_it: str) -> set[str]:
    before, after = said(base.replace("@", without)), said(base.replace("@", with_it))
    return {part for part in before if before[part] != after[part]}


MAX = "{class_name: MaxAttemptsCondition, max_attempts: 3}"
COOL = "{class_name: CooldownCondition, cooldown_seconds: 90}"
NOTED = "class_name: LogAction"
UNASKED = "{class_name: FileExistsCondition, path: /x}"


@pytest.mark.parametrize(
    ("base", "without", "with_it", "wanted"),
    [
        # a monitor of the first two generations
        (MONITOR, "", "poll_interval_seconds: 30\n", {"moot"}),
        (MONITOR, "", "check_interval_seconds: 30\n", {"moot"}),
        (MONITOR, "", "inactivity_threshold_seconds: 77\n", {"silence"}),
        (MONITOR, "", "inactivity_threshold_seconds: null\n", {"silence"}),
        (MONITOR, "", "termination_string: the end\n", {"rules", "metadata"}),
        (MONITOR, "", "termination_command: test -f x\n", {"not executed"}),
        (MONITOR, "", "log_path_template: x.out\n", {"moot"}),
        (MONITOR, "", "output_paths: [x.out]\n", {"moot"}),
        (MONITOR, "", "start_condition_cmd: test -f x\n", {"not executed"}),
        (MONITOR, "", "start_condition_interval_seconds: 5\n", {"moot"}),
        (MONITOR, "", "debug_sync: true\n", {"moot"}),
        (MONITOR, "", "state_whitelist: [pending]\n", {"moot"}),
        (MONITOR, "", "metadata: {team: red}\n", {"metadata"}),
        (MONITOR, "", "house: {b: 2}\n", {"metadata", "warning"}),
        # a signal
        (OLDEST, "", ", pattern_type: substring", {"rules"}),
        (OLDEST, "", ", metadata: {error_type: oom}", {"rules", "metadata"}),
        (OLDEST, "", ", metadata: {subsystem: cuda}", {"rules", "metadata"}),
        (OLDEST, "", ", metadata: {severity: critical}", {"rules", "metadata"}),
        (OLDEST, "", ", metadata: {stage: late}", {"metadata"}),
        (OLDEST, "", ", extract_groups: {iteration: n}", {"rules"}),
        (OLDEST, "", ", extract_groups: {iteration: 1}", {"rules"}),
        (OLDEST, "", ", extract_groups: {words: match}", {"rules"}),
        (OLDEST, "", ", colour: red", {"metadata", "warning"}),
        (SIGNAL, "", ", actions: [{class_name: ErrorNoteAction, note: look}]", set()),  # docs/oellm.md
        (SIGNAL, "", ", actions: [{class_name: LogAction, note: look}]", set()),
        (SIGNAL, "", ", actions: [{class_name: TerminationAction, message: x}]", set()),
        (SIGNAL, "", ", actions: [{class_name: RestartAction, reason: x, mode: crash}]", set()),
        (SIGNAL, "", ", actions: [{class_name: ExecutionAction, command: [sh, x]}]", {"not executed"}),
        # restart policies
        (ALWAYS, "", ", reason: again", {"policy"}),
        (ALWAYS, "", ", max_retries: 4", {"policy", "warning"}),
        (SELECTIVE, "", ", max_retries: 4", {"policy"}),
        (SELECTIVE, "", ", max_retries: null", {"policy", "warning"}),
        (SELECTIVE, "", ", restart_on_error_types: [nccl]", {"policy"}),
        (SELECTIVE, "", ", restart_on_subsystems: [cuda]", {"policy"}),
        (SELECTIVE, "", ", restart_on_signals: [a]", {"policy"}),
        (SELECTIVE, "", ", exclude_error_types: [oom]", {"policy"}),
        (SELECTIVE, "", ", default_action: restart", {"policy"}),
        (SELECTIVE, "", ", restart_reason: again", {"policy"}),
        (SELECTIVE, "", ", stop_reason: enough", {"policy"}),
        (NO, "", ", message: never", {"policy"}),
        (ALWAYS.replace("crash", "@").replace("Policy@", "Policy"), "crash", "stall", {"policy"}),
        # the third generation's actions and conditions
        (SECOND, "", "{class_name: RestartAction, reason: again}", {"policy", "warning", "changed"}),
        (SECOND, "", "{class_name: LogAction, message: look}", set()),
        (SECOND, "", "{class_name: RunCommandAction, command: [sh, x], cwd: /x}", {"not executed"}),
        (SECOND, "", "{class_name: RunAutoexpAction, script: x.py, no_monitor: false}", {"not executed"}),
        (SECOND, "", "{class_name: PublishEventAction, event_name: e, payload: {a: 1}}", {"not executed"}),
        (SECOND_STATE, "", ", metadata: {a: 1}", set()),  # asked of by conditions alone
        (SECOND_STATE, "", ", actions: [{class_name: RestartAction}]", {"policy", "warning", "changed"}),
        (GUARDED, "", MAX, {"policy", "warning"}),  # it is no longer without a bound
        (GUARDED, "", COOL, {"policy"}),
        (GUARDED, "", "{class_name: AlwaysTrueCondition, message: x}", set()),
        (GUARDED, "", UNASKED, {"policy", "not executed"}),
        (GUARDED, "", "{class_name: GlobExistsCondition, pattern: /x/*}", {"policy", "not executed"}),
        (GUARDED, "", "{class_name: CommandCondition, command: [sh, x]}", {"policy", "not executed"}),
        (GUARDED, "", "{class_name: MetadataCondition, key: error_type, equals: oom}", {"policy"}),
        (
            GUARDED,
            f"{{class_name: CompositeCondition, mode: all, conditions: [{MAX}, {COOL}]}}",
            f"{{class_name: CompositeCondition, mode: any, conditions: [{MAX}, {COOL}]}}",
            {"policy"},
        ),
        # the newest one
        (JOB, "", "name: x", {"moot"}),
        (JOB, "", "log_path_current: x", {"moot"}),
        (JOB, "", "config_path: x", {"moot"}),
        (JOB, "", "config_path_current: x", {"moot"}),
        (JOB, "", "slurm: {partition: p}", {"moot"}),
        (JOB, "", "command: [python, x]", {"moot"}),
        (JOB, "", "extra_args: [x]", {"moot"}),
        (JOB, "", "array_args: [x]", {"moot"}),
        (JOB, "", "array_len: 4", {"moot"}),
        (JOB, "", "log_to_file: true", {"moot"}),
        (JOB, "", "metadata: {a: 1}", {"metadata"}),
        (JOB, "", f"start_condition: {UNASKED}", {"not executed"}),
        (JOB, "", f"cancel_condition: {UNASKED}", {"not executed"}),
        (JOB, "", f"finish_condition: {UNASKED}", {"not executed"}),
        (EVENT, "", ", pattern_type: regex", set()),  # of a pattern without a sign the two are one
        (EVENT, "", ", match_once: false", set()),  # a storm of hits is one verdict
        (EVENT, "", f", condition: {MAX}", {"policy", "warning"}),
        (EVENT, "", f", condition: {{class_name: AndCondition, conditions: [{MAX}]}}", {"policy", "warning"}),
        (EVENT, "", f", condition: {{class_name: OrCondition, conditions: [{MAX}]}}", {"policy", "warning"}),
        (EVENT, "", f", condition: {{class_name: NotCondition, condition: {COOL}}}", {"policy"}),
        (EVENT, "", ", condition: {class_name: MetadataCondition, key: subsystem, within: [x]}", {"policy"}),
        (
            EVENT,
            f", condition: {COOL}",
            f", condition: {COOL[:-1]}, persistent_pass: true}}",
            {"moot"},
        ),
        *(
            (EVENT, "", f", condition: {{class_name: {name}}}", {"policy", "not executed"})
            for name in (
                "TimeoutCondition",
                "FileContentCondition",
                "ShellCommandCondition",
                "BlockingFileExistsCondition",
                "SlurmStateCondition",
                "LogPatternCondition",
            )
        ),
        (ACTION, NOTED, "class_name: RestartAction", {"rules", "policy", "warning", "changed"}),
        (ACTION, NOTED, "class_name: CancelAction", {"rules", "policy", "changed"}),
        (ACTION, NOTED, "class_name: FinishAction", {"rules", "policy", "changed"}),
        (ACTION, "class_name: CancelAction", "class_name: CancelAction, reason: x", {"policy"}),
        (ACTION, NOTED, "class_name: LogAction, level: error, message: x", set()),
        (ACTION, NOTED, "class_name: AppendToFileAction, path: /x", {"not executed"}),
        (ACTION, NOTED, "class_name: UpdateChainExcludesAction, exclude_file: x", {"not executed"}),
        (ACTION, NOTED, "class_name: NewJobAction, job_config: {a: 1}", {"not executed"}),
        (QUIET.replace("#", ""), "", "poll_interval_seconds: 10\n  ", {"silence"}),
        (QUIET.replace("@", "").replace("#", "@"), "", ", inactivity_polls: 5", {"silence"}),
        (QUIET.replace("@", "").replace("#", "@"), "", ", inactivity_timeout_s: 500", {"silence"}),
        (CHANGE, "", ", action: {class_name: RestartAction}", {"policy", "warning", "changed"}),
        (
            CHANGE,
            ", action: {class_name: RestartAction}",
            ", action: {class_name: RestartAction}, transition: [RUNNING, FAILED]",
            {"policy"},
        ),
    ],
)  # fmt: skip
def test_each_key_has_the_effect_that_the_page_states(
    base: str, without: str, with_it: str, wanted: set[str]
) -> None:
    assert effect(base, without, with_it) == wanted
