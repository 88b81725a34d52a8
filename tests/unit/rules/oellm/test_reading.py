"""What each generation's keys become: rules, silence limits, notes."""

from __future__ import annotations

import pytest

from midwatch.rules.errors import RuleErrors
from midwatch.rules.loader import bundle_files, load_bundle, shipped_files
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.matching.inspection import check_files
from midwatch.rules.model import Bundle, Mode, NoteKind, Phase, Role, Rule
from midwatch.rules.oellm.actions import ActionKind
from midwatch.rules.oellm.generation import SchemaGeneration
from midwatch.rules.oellm.reading import Config, bundle_of, read_config
from unit.rules.oellm.fixture_files import FIXTURES, files


def config(root: str) -> Config:
    return read_config(root, files())


def written(text: str) -> Config:
    return read_config("mine.yaml", {"mine.yaml": text.encode()})


def rules(read: Config) -> dict[str, Rule]:
    return {rule.name: rule for rule in read.rules}


def told(read: Config, kind: NoteKind) -> list[str]:
    return [str(note) for note in read.notes if note.kind is kind]


def captured(rule: Rule, line: str) -> dict[str, str]:
    (hit,) = compile_rules([rule]).match_line(line.encode())
    return dict(hit.captures())


@pytest.mark.parametrize(
    ("root", "generation"),
    [
        ("gen0/monitoring/words.yaml", SchemaGeneration.MODES),
        ("gen1/monitoring/full.yaml", SchemaGeneration.STATES),
        ("gen1/restart/selective.yaml", SchemaGeneration.STATES),
        ("gen1/experiments/run.yaml", SchemaGeneration.STATES),
        ("gen2/monitoring/plain.yaml", SchemaGeneration.BINDINGS),
        ("gen3/job/guarded.yaml", SchemaGeneration.TRANSITIONS),
        ("gen3/job/default.yaml", SchemaGeneration.TRANSITIONS),
        ("gen3/experiments/run.yaml", SchemaGeneration.TRANSITIONS),
    ],
)
def test_the_generation_is_told_from_the_keys(root: str, generation: SchemaGeneration) -> None:
    assert config(root).generation is generation


@pytest.mark.capability("S001-17", "S001-18", "S001-19", "S001-20", "S001-26", "S001-27")
def test_the_oldest_words_become_roles_and_modes() -> None:
    found = rules(config("gen0/monitoring/words.yaml"))
    assert {name: (rule.role, rule.mode) for name, rule in found.items()} == {
        "step_printed": (Role.PROGRESS, None),
        "gpu_memory": (Role.CAUSE, Mode.CRASH),
        "ring_broken": (Role.CAUSE, Mode.CRASH),
        "wall_clock": (Role.CAUSE, Mode.TIMEOUT),
        "nothing_moves": (Role.CAUSE, Mode.STALL),
        "over": (Role.SUCCESS, None),
        "termination_string": (Role.SUCCESS, None),
    }
    assert (found["gpu_memory"].error_type, found["gpu_memory"].subsystem) == ("oom", "cuda")
    assert (found["gpu_memory"].severity, found["gpu_memory"].transient) == ("critical", False)
    assert (found["wall_clock"].error_type, found["nothing_moves"].error_type) == ("timeout", "hang")
    assert found["ring_broken"].transient is True


@pytest.mark.capability("S001-17", "S001-18", "S001-19", "S001-20", "S001-30")
def test_states_by_their_class_become_roles_and_modes() -> None:
    found = rules(config("gen1/monitoring/full.yaml"))
    assert {name: (str(rule.role), rule.mode) for name, rule in found.items()} == {
        "finished": ("success", None),
        "checkpoint": ("progress", None),  # a saved checkpoint is no end, though its state says success
        "steps": ("progress", None),
        "oom": ("cause", "crash"),
        "nccl_timeout": ("cause", "crash"),
        "hang": ("cause", "stall"),
        "limit": ("cause", "timeout"),
        "warned": ("context", None),
        "begun": ("context", None),
        "exception": ("cause", "crash"),
    }


@pytest.mark.capability("S001-15", "S001-28", "S001-29")
def test_captures_come_by_name_by_number_and_as_the_whole_match() -> None:
    found = rules(config("gen1/monitoring/full.yaml"))
    checkpoint = captured(found["checkpoint"], "checkpoint of step 40 is in /c/40")
    assert checkpoint == {"step": "40", "checkpoint_path": "/c/40"}
    assert captured(found["nccl_timeout"], "x NCCL op timeout") == {"timeout_details": "NCCL op timeout"}
    oldest = rules(config("gen0/monitoring/words.yaml"))
    assert captured(oldest["step_printed"], "step 7 of 90, loss 2.25") == {
        "step": "7",
        "total_steps": "90",
        "loss": "2.25",
    }
    assert captured(oldest["gpu_memory"], "out of memory: wanted 12 MiB") == {"size": "12 MiB"}


@pytest.mark.parametrize(
    ("event", "class_name", "reason"),
    [
        pytest.param(
            "oom",
            "RestartAction",
            "a wish that the policy overrules",
            marks=pytest.mark.capability("S001-23", "S001-74"),
            id="RestartAction",
        ),
        pytest.param(
            "limit",
            "TerminationAction",
            "the time is up",
            marks=pytest.mark.capability("S001-24"),
            id="TerminationAction",
        ),
        pytest.param(
            "steps",
            "ErrorNoteAction",
            "progress_update",
            marks=pytest.mark.capability("S001-21"),
            id="ErrorNoteAction",
        ),
    ],
)
def test_an_action_that_asks_for_something_is_kept_with_its_reason_as_a_note(
    event: str, class_name: str, reason: str
) -> None:
    read = config("gen1/monitoring/full.yaml")
    (action,) = next(each.actions for each in read.events if each.name == event)
    assert (action.class_name, action.kind, action.reason) == (class_name, ActionKind.NOTE, reason)
    assert class_name not in "\n".join(told(read, NoteKind.NOT_EXECUTED))


@pytest.mark.capability("S001-16")
def test_the_usual_type_of_a_pattern_depends_on_the_generation() -> None:
    newest = rules(config("gen3/job/guarded.yaml"))
    assert compile_rules([newest["finished"]]).match_line(b"x [training is done] x")
    assert not compile_rules([newest["finished"]]).match_line(b"t")
    older = rules(config("gen2/monitoring/plain.yaml"))
    assert captured(older["link_down"], "link 12 is down") == {"link": "12"}


def test_finishing_is_a_success_unless_its_words_tell_of_a_failure() -> None:
    found = rules(config("gen3/job/guarded.yaml"))
    assert (found["finished"].role, found["bad_fabric_2"].role) == (Role.SUCCESS, Role.CAUSE)
    assert (found["bad_exit"].role, found["over_limit"].role) == (Role.CAUSE, Role.CAUSE)
    assert (found["bad_fabric"].role, found["told"].role) == (Role.CONTEXT, Role.CONTEXT)
    assert found["bad_exit"].error_type == "exception"


@pytest.mark.parametrize(
    ("root", "seconds", "any_line"),
    [
        ("gen0/monitoring/words.yaml", 700.0, True),
        ("gen1/monitoring/plain.yaml", 1800.0, True),
        ("gen1/monitoring/full.yaml", 1200.0, True),
        ("gen1/experiments/run.yaml", 600.0, True),
        ("gen2/monitoring/more.yaml", 7 * 86400.0, False),  # null: silence is never too long
        ("gen3/job/guarded.yaml", 300.0, True),  # 5 polls of 60 s and 200 s: both must have passed
        ("gen3/job/default.yaml", 7 * 86400.0, False),
    ],
)
@pytest.mark.capability("S001-33", "S001-78")
def test_the_threshold_of_inactivity_is_the_silence_limit_of_every_phase(
    root: str, seconds: float, any_line: bool
) -> None:
    read = config(root)
    assert dict(read.silence) == dict.fromkeys(Phase, seconds)
    assert read.any_line is any_line


def test_a_null_monitor_watches_nothing_and_never_calls_a_job_silent() -> None:
    read = written("class_name: NullMonitor\npoll_interval_seconds: 600\ninactivity_threshold_seconds: 900\n")
    assert (read.rules, read.any_line, read.silence[Phase.TRAINING]) == ((), False, 7 * 86400.0)


def test_a_monitor_without_signals_gets_our_rules_for_its_built_in_ones() -> None:
    read = written("class_name: SlurmLogMonitor\ninactivity_threshold_seconds: 60\n")
    names = {rule.name for rule in bundle_of(read, shipped_files()).rules}
    assert names == {rule.name for rule in bundle_of_preset("default").rules}


def bundle_of_preset(name: str) -> Bundle:
    return bundle_of(written(f"defaults:\n  - /monitoring: {name}\n"), shipped_files())


@pytest.mark.capability("S001-08")
def test_a_preset_whose_file_is_not_there_is_taken_from_us_and_the_own_rules_win() -> None:
    read = written(
        "defaults:\n  - megatron_basic\n  - _self_\nlog_signals:\n"
        "  - {name: megatron_iteration, pattern: 'mine (?P<step>[0-9]+)', metadata: {kind: progress}}\n"
    )
    bundle = bundle_of(read, shipped_files())
    patterns = [rule.pattern for rule in bundle.rules if rule.name == "megatron_iteration"]
    assert patterns == ["mine (?P<step>[0-9]+)"]
    assert len(bundle.rules) > 10
    assert any("midwatch's of that name replaces it" in note for note in told(read, NoteKind.CHANGED))


@pytest.mark.capability("S001-31", "S001-32")
def test_intervals_are_accepted_and_said_to_be_moot() -> None:
    moot = "\n".join(told(config("gen0/monitoring/words.yaml"), NoteKind.MOOT))
    assert "words.yaml:3:1: moot: `poll_interval_seconds`" in moot
    assert "words.yaml:4:1: moot: `check_interval_seconds`" in moot
    assert "log_path_template" in moot


@pytest.mark.parametrize(
    ("root", "named"),
    [
        ("gen0/monitoring/words.yaml", ["termination_command", "test -f finished"]),
        ("gen1/monitoring/full.yaml", ["start_condition_cmd", "ExecutionAction", "python evaluate.py"]),
        ("gen2/monitoring/plain.yaml", ["RunCommandAction", "bash notify.sh", "RunAutoexpAction"]),
        ("gen3/experiments/run.yaml", ["AppendToFileAction", "NewJobAction", "LogPatternCondition"]),
    ],
)
def test_what_would_run_or_write_something_is_listed_as_not_executed(root: str, named: list[str]) -> None:
    listed = "\n".join(told(config(root), NoteKind.NOT_EXECUTED))
    assert [word for word in named if word not in listed] == []


@pytest.mark.capability("S001-73")
@pytest.mark.parametrize("root", [name for name in files() if not name.startswith("broken/")])
def test_every_file_says_that_nothing_acts_until_it_is_armed(root: str) -> None:
    (note,) = told(config(root), NoteKind.ARMING)
    assert "midwatch acts only on armed jobs" in note


def test_a_list_that_replaces_another_says_what_was_lost() -> None:
    (note,) = [n for n in told(config("gen2/monitoring/more.yaml"), NoteKind.WARNING) if "replaces" in n]
    assert "lost: oom, link_down, node_lost, silent" in note
    assert not any("replaces" in n for n in told(config("gen1/monitoring/full.yaml"), NoteKind.WARNING))


def test_a_pattern_that_finds_healthy_lines_is_warned_of() -> None:
    read = written("log_signals:\n  - {name: n, pattern: 'loss.*nan', state: {class_name: CrashState}}\n")
    assert any("also matches a healthy line" in note for note in told(read, NoteKind.WARNING))


def test_an_interpolation_is_never_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECONDS", "5")
    read = written(
        "class_name: SlurmLogMonitor\ninactivity_threshold_seconds: ${oc.env:SECONDS}\nlog_signals:\n"
        "  - {name: own, pattern: 'path ${oc.env:HOME}', pattern_type: substring,"
        " state: {class_name: CrashState}}\n"
    )
    assert read.silence[Phase.TRAINING] == 900.0
    assert compile_rules(read.rules).match_line(b"path ${oc.env:HOME}")
    assert (
        len([note for note in told(read, NoteKind.WARNING) if "interpolation" in note or "launch" in note])
        == 2
    )


def test_keys_nobody_knows_are_kept_as_metadata() -> None:
    read = written("log_events:\n  - {name: own, pattern: x, colour: red, metadata: {a: 1}}\nhouse: {b: 2}\n")
    assert rules(read)["own"].metadata == {"house": {"b": 2}, "a": 1, "colour": "red"}
    assert len(told(read, NoteKind.WARNING)) == 2


def test_mistakes_come_at_once_with_their_places_and_advice() -> None:
    with pytest.raises(RuleErrors) as raised:
        config("broken/patterns.yaml")
    places = [(error.location.line, error.location.column) for error in raised.value.errors]
    assert places == [(4, 14), (8, 14), (12, 14), (16, 12)]
    said = str(raised.value)
    assert "no look-ahead or look-behind" in said
    assert "Write two rules if both lines matter" in said
    assert all(error.remedy for error in raised.value.errors)


def test_the_files_of_a_bundle_are_all_that_is_needed_to_read_it_again() -> None:
    """As `rules check` and `rules push` take them: by name and bytes, without a disk."""
    named, root = bundle_files(str(FIXTURES / "gen1/experiments/run.yaml"))
    checked = check_files(root, dict(named))
    assert checked.errors == ()
    assert checked.bundle == load_bundle(str(FIXTURES / "gen1/experiments/run.yaml"))
    assert checked.bundle is not None
    assert [path.rpartition("gen1/")[2] for path in checked.bundle.files] == [
        "experiments/run.yaml",
        "monitoring/full.yaml",
        "monitoring/plain.yaml",
        "restart/selective.yaml",
    ]


def test_a_check_tells_the_mistakes_of_a_foreign_file() -> None:
    named, root = bundle_files(str(FIXTURES / "broken/patterns.yaml"))
    assert [error.location.line for error in check_files(root, named).errors] == [4, 8, 12, 16]
