"""What a foreign configuration decides: by mode, by list, by guard, in the order that it says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.policies import choose
from midwatch.agents.policies.base import Clause, ClauseKind, Policy, PolicyMode
from midwatch.agents.policies.conditions import Past
from midwatch.agents.policies.oellm import RetryCounting, policy_of
from midwatch.agents.policies.reader import read_policy
from midwatch.agents.policies.writer import policy_text
from midwatch.rules.errors import RuleErrors
from midwatch.rules.model import NoteKind
from midwatch.rules.oellm.reading import read_config
from midwatch.streams.records import Incident
from unit.agents.policies.incidents import fact, hit, incident
from unit.rules.oellm.fixture_files import files

READABLE = [name for name in files() if not name.startswith("broken/")]


def policy(root: str, counting: RetryCounting = RetryCounting.DOCUMENTED) -> Policy:
    return policy_of(read_config(root, files()), counting)


def decided(root: str, seen: Incident, past: Past | None = None) -> tuple[str, str]:
    _, choice = choose(policy(root), seen, past)
    return choice.action, choice.reason


@pytest.mark.capability("S001-40", "S001-42")
def test_each_mode_has_its_policy_with_as_many_restarts_as_it_documents() -> None:
    clauses = policy("gen1/experiments/run.yaml").clauses
    limits = {mode.value: (str(clause.kind), clause.max_restarts) for mode, clause in clauses.items()}
    assert limits == {
        "crash": ("selective", 3),
        "stall": ("always", 2),
        "timeout": ("always", 1),
        "success": ("never", 3),
    }
    assert not any(clause.across_modes for clause in clauses.values())


def test_compatible_counting_gives_one_restart_less_over_all_modes() -> None:
    clauses = policy("gen1/experiments/run.yaml", RetryCounting.COMPAT).clauses
    counts = [(clauses[mode].max_restarts, clauses[mode].across_modes) for mode in list(PolicyMode)[:3]]
    assert counts == [(2, True), (1, True), (0, True)]


@pytest.mark.capability("S001-41", "S001-44", "S001-45", "S001-46", "S001-47", "S001-48", "S001-43")
def test_excludes_come_first_then_any_list_then_the_default() -> None:
    root = "gen1/experiments/run.yaml"
    assert decided(root, incident(hit("nccl_timeout", "nccl_timeout")))[0] == "restart"
    assert decided(root, incident(hit("oom", "oom")))[0] == "stop"  # listed and excluded
    assert decided(root, incident(hit("x", "exception", subsystem="distributed")))[0] == "stop"
    assert decided(root, incident(hit("x", "never_heard_of")))[0] == "restart"  # the default
    stopping = "gen0/restart/gentle.yaml"
    assert decided(stopping, incident(hit("x", "never_heard_of"))) == (
        "stop",
        "never_heard_of is in none of the restart lists (it will not pass)",
    )
    assert decided(stopping, incident(hit("ring_broken", "torch")))[0] == "restart"  # by the signal's name


def test_a_list_that_names_a_coarse_type_covers_its_finer_ones() -> None:
    root = "gen1/experiments/run.yaml"
    assert decided(root, incident(error_type="host_oom"))[0] == "stop"
    assert decided(root, incident(error_type="import_error"))[0] == "stop"
    assert "preemption" in decided(root, incident(error_type="preemption"))[1]


def test_a_mode_without_a_policy_is_never_restarted() -> None:
    assert decided("gen0/restart/gentle.yaml", incident(mode="stall", silence=900.0))[0] == "stop"


@pytest.mark.capability("S001-13")
def test_a_monitor_without_restarts_only_watches() -> None:
    for root in ("gen0/monitoring/words.yaml", "gen1/monitoring/full.yaml", "gen3/job/default.yaml"):
        assert decided(root, incident(hit("nccl_timeout", "nccl_timeout")))[0] == "stop"


ALONE = """
log_signals:
  - name: wished
    pattern: it broke
    state: {class_name: CrashState}
    actions: [{class_name: RestartAction, reason: please}]
policies:
  - mode: crash
    implementation:
      class_name: SelectiveRestartPolicy
      restart_on_error_types: [nccl]
      restart_on_subsystems: [fabric]
      restart_on_signals: [odd_line]
"""


def decided_alone(seen: Incident) -> str:
    made = policy_of(read_config("own.yaml", {"own.yaml": ALONE.encode()}), RetryCounting.DOCUMENTED)
    return choose(made, seen, None)[1].action


@pytest.mark.capability("S001-41", "S001-44", "S001-45", "S001-46", "S001-79")
def test_any_one_of_the_three_lists_is_enough() -> None:
    assert decided_alone(incident(hit("x", "nccl"))) == "restart"
    assert decided_alone(incident(hit("x", "torch", subsystem="fabric"))) == "restart"
    assert decided_alone(incident(hit("odd_line", "torch"))) == "restart"
    assert decided_alone(incident(hit("x", "torch", subsystem="cuda"))) == "stop"


@pytest.mark.capability("S001-23", "S001-74")
def test_the_wish_of_an_event_for_a_restart_is_only_noted_where_policies_stand_beside() -> None:
    assert decided("gen1/experiments/run.yaml", incident(hit("oom", "oom")))[0] == "stop"
    assert decided_alone(incident(hit("wished", "unknown"))) == "stop"


@pytest.mark.parametrize(
    ("error_type", "rule", "restarts", "action"),
    [
        ("slurm_failure", "node_lost", 0, "restart"),
        ("slurm_failure", "node_lost", 2, "restart"),
        ("slurm_failure", "node_lost", 3, "stop"),  # four attempts were made
        ("oom", "oom", 0, "stop"),
        ("communication", "link_down", 0, "restart"),  # by the metadata of its event
        ("preemption", "", 0, "restart"),  # covered by cancelled
    ],
)
def test_conditions_on_attempts_and_metadata_guard_a_restart(
    error_type: str, rule: str, restarts: int, action: str
) -> None:
    seen = incident(hit(rule, error_type)) if rule else incident(error_type=error_type)
    assert decided("gen2/monitoring/plain.yaml", seen, Past(restarts))[0] == action


def test_a_cooldown_orders_the_restart_for_later() -> None:
    past = Past(1, last_restart_ms=1_000_000, now_ms=1_050_000)
    _, choice = choose(policy("gen2/monitoring/plain.yaml"), incident(error_type="slurm_failure"), past)
    assert (choice.action, choice.not_before_ms) == ("restart", 1_120_000)
    assert "120 s lie between two restarts" in choice.reason


def test_what_hangs_on_a_condition_that_nobody_asks_waits_for_a_person() -> None:
    action, reason = decided("gen2/monitoring/more.yaml", incident(hit("disk_full", "storage")))
    assert (action, "GlobExistsCondition is not asked" in reason) == ("hold", True)
    action, _ = decided("gen3/job/guarded.yaml", incident(hit("out_of_disk", "storage")))
    assert action == "hold"


@pytest.mark.parametrize(
    ("seen", "restarts", "action", "words"),
    [
        (incident(hit("bad_exit", "exception")), 0, "restart", "the rule bad_exit asks for a restart: again"),
        (incident(hit("bad_exit", "exception")), 2, "stop", "nothing"),
        (incident(hit("bad_fabric_2", "unknown")), 0, "stop", "node excluded"),
        (incident(hit("over_limit", "unknown")), 0, "stop", "asks for a cancel"),  # it has ended already
        pytest.param(
            incident(hit("over_limit", "unknown"), silence=400.0, mode="stall"),
            0,
            "cancel",
            "no more time",
            marks=pytest.mark.capability("S001-24"),
            id="a cancel of a silent job",
        ),
        (incident(silence=400.0, mode="stall"), 0, "cancel", "Inactive Log"),
        (incident(silence=400.0, mode="stall", said=fact("RUNNING", "CANCELLED")), 0, "stop", "Inactive Log"),
        (incident(said=fact("RUNNING", "FAILED")), 0, "restart", "RUNNING → FAILED"),
        (incident(said=fact("RUNNING", "FAILED")), 1, "stop", "nothing"),
        (incident(said=fact("RUNNING", "OUT_OF_MEMORY")), 0, "stop", "nothing"),
        (incident(said=fact("RUNNING", "TIMEOUT", mode="timeout"), mode="timeout"), 9, "restart", "TIMEOUT"),
        (incident(said=fact("running", "ended", cluster="local")), 0, "restart", "RUNNING → FAILED"),
        (incident(said=fact("PENDING", "FAILED")), 0, "stop", "nothing"),
    ],
)
def test_the_newest_events_are_asked_in_the_order_of_the_file(
    seen: Incident, restarts: int, action: str, words: str
) -> None:
    said, reason = decided("gen3/job/guarded.yaml", seen, Past(restarts))
    assert (said, words in reason) == (action, True), reason


def test_a_restart_without_a_bound_is_warned_of() -> None:
    notes = [str(n) for n in policy("gen3/job/guarded.yaml").notes if n.kind is NoteKind.WARNING]
    assert sum("restarted for ever" in note for note in notes) == 2
    assert not any("bad_exit" in note for note in notes)


def test_it_is_told_that_a_line_alone_ends_no_running_job() -> None:
    notes = [str(n) for n in policy("gen3/job/guarded.yaml").notes if n.kind is NoteKind.CHANGED]
    assert sum("a line alone ends no running job" in note for note in notes) == 2


@pytest.mark.parametrize("root", READABLE)
def test_a_policy_is_read_as_it_was_written(root: str) -> None:
    made = policy(root)
    assert read_policy("x.yaml", policy_text(made).encode()) == replace(made, notes=())


def test_our_own_policies_are_read_as_they_were_written() -> None:
    made = Policy(
        "p", {PolicyMode.CRASH: Clause(ClauseKind.VERDICT, 0, "hold", across_modes=True)}, True, "d"
    )
    assert read_policy("x.yaml", policy_text(made).encode()) == made


@pytest.mark.parametrize("mode", ["crash", "success"])
def test_a_mode_without_its_policy_is_a_mistake_with_its_place(mode: str) -> None:
    text = f"policies:\n  - mode: {mode}\n"
    with pytest.raises(RuleErrors) as raised:
        policy_of(read_config("own.yaml", {"own.yaml": text.encode()}), RetryCounting.DOCUMENTED)
    (mistake,) = raised.value.errors
    assert (mistake.location.line, "implementation" in mistake.what) == (2, True)


def test_mistakes_in_policies_are_told_with_their_places() -> None:
    with pytest.raises(RuleErrors) as raised:
        policy("broken/policies.yaml")
    said = [(error.location.line, error.what) for error in raised.value.errors]
    assert said == [
        (3, "there is no policy 'SometimesRestartPolicy'"),
        (4, "`mode` is 'crush'"),
        (7, "`max_retries` is text, not a whole number"),
        (7, "unknown key `retries` in `implementation`"),
    ]
