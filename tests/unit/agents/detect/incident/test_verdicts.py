"""What is said of an attempt that ended, and what is done about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.streams.records import Incident, SchedulerFact
from unit.agents.detect.incident.scene import FIRST, JOB, Scene


def _crashed(scene: Scene) -> None:
    scene.ended()
    scene.last_words()


@pytest.mark.capability("S001-60", "X-01")
def test_a_timeout_printed_by_seven_ranks_is_one_incident_and_one_restart() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    for _ in range(7):
        scene.line("nccl_timeout", role="consequence", transient=True)
    _crashed(scene)
    assert len(scene.settled()) == 1
    assert scene.settled()[0].verdict.error_type == "nccl_timeout"
    assert len(scene.commands) == 1
    assert (scene.decisions[-1].restart_number, scene.decisions[-1].restart_limit) == (1, 3)


@pytest.mark.capability("S001-56", "X-01", "S003-32")
def test_the_quiet_cause_beats_the_loud_consequences() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.line("nccl_timeout", role="consequence", transient=True, at=25)
    cause = scene.line("oom", transient=False, at=24, text="out of memory")
    scene.line("nccl_timeout", role="consequence", transient=True, at=26)
    _crashed(scene)
    verdict = scene.settled()[-1].verdict
    assert (verdict.error_type, verdict.root_line_number) == ("oom", cause.line.number)
    assert scene.actions()[-1] == "stop"
    assert scene.commands == []


def test_a_line_that_the_job_survives_is_withdrawn() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.line("nccl", transient=True)
    scene.train(range(21, 25))
    states = [r.state for r in scene.records if isinstance(r, Incident)]
    assert states == ["suspected", "withdrawn"]
    scene.ended(exit_code=0)
    scene.line("done", role="success")
    scene.last_words()
    assert scene.settled()[-1].verdict.state == "healthy"


@pytest.mark.parametrize(
    ("counts", "withdrawn"),
    [
        (["41", "42", "43"], True),
        (["41", "7", "42", "8", "43"], True),  # two loops, of which one prints less
        (["0", "0", "0", "0"], False),  # the bars of many ranks, left behind as they were
        (["41", "42"], False),
        (["41", "40", "41", "40", "41"], False),
        (["fast", "faster", "fastest"], False),
    ],
)
def test_a_loop_that_prints_no_step_shows_by_its_count_that_it_goes_round(
    counts: list[str], withdrawn: bool
) -> None:
    scene = Scene()
    scene.spec()
    scene.progress(-1, count="40")
    scene.line("exception", transient=False)
    for count in counts:
        scene.now += 1
        scene.progress(-1, count=count)
    states = [r.state for r in scene.records if isinstance(r, Incident)]
    assert states == (["suspected", "withdrawn"] if withdrawn else ["suspected"])


def test_broken_numbers_are_not_mended_by_a_loop_that_goes_round() -> None:
    scene = Scene()
    scene.spec()
    scene.line("numerical_instability", transient=False)
    for count in range(9):
        scene.progress(-1, count=str(count))
    assert [r.state for r in scene.records if isinstance(r, Incident)] == ["suspected"]


_LOSS, _NAN, _BAR = ("log", "0.4", "2.1"), ("log", "0.4", "nan"), ("bar", "", "")


@pytest.mark.parametrize(
    ("lines", "withdrawn"),
    [
        ([_LOSS, _BAR, _BAR, _BAR], True),
        ([_LOSS, _BAR, _BAR], False),
        ([_BAR, _BAR, _BAR, _LOSS, _BAR, _BAR], False),  # what the bar counted before the loss shows nothing
        ([_LOSS, _LOSS, _LOSS, _LOSS], False),  # its epoch does not rise, and no bar counts
        ([_NAN, _BAR, _BAR, _BAR], False),
        ([_LOSS, _NAN, _BAR, _BAR, _BAR], False),
        ([_LOSS, _BAR, _NAN, _BAR, _BAR, _LOSS, _BAR, _BAR, _BAR], True),
    ],
)
def test_a_finite_loss_lets_a_bar_that_counts_on_show_the_end_of_broken_numbers(
    lines: list[tuple[str, str, str]], withdrawn: bool
) -> None:
    scene = Scene()
    scene.spec()
    scene.line("numerical_instability", transient=False)
    for number, (rule, count, loss) in enumerate(lines):
        scene.now += 1
        scene.progress(-1, count=count or str(number), loss=loss, rule=rule)
    states = [r.state for r in scene.records if isinstance(r, Incident)]
    assert states == (["suspected", "withdrawn"] if withdrawn else ["suspected"])


@pytest.mark.parametrize(
    ("losses", "withdrawn"), [(["2.1"], True), ([], False), (["nan"], False), (["2.1", "nan"], False)]
)
def test_a_finite_loss_lets_steps_without_one_show_the_end_of_broken_numbers(
    losses: list[str], withdrawn: bool
) -> None:
    scene = Scene()
    scene.spec()
    scene.progress(40)
    scene.line("numerical_instability", transient=False)
    for loss in losses:
        scene.now += 1
        scene.progress(-1, count="0.4", loss=loss, rule="log")
    scene.train(range(41, 44))
    states = [r.state for r in scene.records if isinstance(r, Incident)]
    assert states == (["suspected", "withdrawn"] if withdrawn else ["suspected"])


@pytest.mark.capability("S001-35", "S001-64")
def test_what_a_person_cancels_is_left_alone() -> None:
    scene = Scene(policy="megatron_aggressive")
    scene.spec()
    scene.train(range(1, 21))
    scene.line("nccl_timeout", role="consequence", transient=True)
    scene.ended(exit_code=0, mode="crash", error_type="cancelled", by_person="uid 1000")
    scene.last_words()
    assert scene.actions()[-1] == "none"
    assert "uid 1000" in scene.decisions[-1].reason
    assert scene.commands == []


def test_a_process_that_is_gone_waits_for_the_scheduler_to_say_who_ended_it() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.line("nccl", transient=True)
    scene.last_words()
    assert scene.settled() == []
    scene.now += 3
    scene.ended(mode="crash", error_type="cancelled", by_person="uid 1000")
    assert scene.actions()[-1] == "none"


def test_exit_code_0_long_before_the_last_step_is_no_success() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.ended(exit_code=0)
    scene.last_words()
    assert scene.settled()[-1].verdict.state == "unknown"
    assert scene.actions()[-1] == "hold"


@pytest.mark.capability("S001-18", "S001-37", "S001-84")
def test_a_job_that_says_it_is_done_is_healthy() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.line("done", role="success")
    scene.ended(exit_code=0)
    scene.last_words()
    assert scene.settled()[-1].verdict.state == "healthy"
    assert scene.actions()[-1] == "none"


@pytest.mark.capability("S001-42", "S001-75")
def test_the_budget_is_what_the_policy_promises() -> None:
    scene = Scene(policy="megatron_transient")
    scene.spec()
    for attempt in range(1, 6):
        scene.incarnation = f"local:{attempt}:1"
        scene.train(range(1, 11))
        scene.line("nccl_timeout", role="consequence", transient=True)
        _crashed(scene)
        if len(scene.commands) == attempt:
            scene.accepted(scene.commands[-1])
            scene.done(scene.commands[-1], f"local:{attempt + 1}:1")
            scene.sequences.clear()
    assert len(scene.commands) == 3
    assert scene.decisions[-1].action == "stop"
    assert "budget" in scene.decisions[-1].reason
    assert scene.decisions[-1].near_misses


@pytest.mark.capability("S001-77")
@pytest.mark.parametrize(
    ("subsystem", "error_type", "by_person", "action", "missed"),
    [
        (
            "distributed",
            "oom",
            "",
            "stop",
            "the subsystem distributed is to be restarted, but oom is excluded",
        ),
        ("", "nccl", "uid 1000", "none", "nccl would be judged, but a person ended it"),
    ],
)
def test_a_decision_not_to_restart_names_what_spoke_for_a_restart(
    subsystem: str, error_type: str, by_person: str, action: str, missed: str
) -> None:
    scene = Scene(policy="megatron_transient")
    scene.spec()
    scene.train(range(1, 11))
    scene.line(error_type, subsystem=subsystem or "test")
    scene.ended(by_person=by_person)
    scene.last_words()
    assert (scene.actions()[-1], scene.decisions[-1].near_misses) == (action, (missed,))


@pytest.mark.capability("S001-77")
def test_a_spent_budget_and_a_doubt_leave_the_reason_for_a_restart_as_a_near_miss() -> None:
    scene = Scene(policy="megatron_transient")
    scene.spec(max_restarts=0)
    scene.train(range(1, 11))
    scene.line("nccl")
    _crashed(scene)
    assert (scene.actions()[-1], scene.decisions[-1].near_misses) == (
        "stop",
        ("the error type nccl is to be restarted",),
    )
    doubted = Scene(policy="megatron_transient")
    doubted.spec()
    doubted.train(range(1, 11))
    doubted.incarnation = "local:200:1"
    doubted.train(range(11, 21))
    doubted.line("nccl")
    _crashed(doubted)
    assert (doubted.actions()[-1], doubted.decisions[-1].near_misses) == (
        "hold",
        ("the error type nccl is to be restarted",),
    )


@pytest.mark.capability("S001-83")
@pytest.mark.parametrize(
    ("name", "action"),
    [("", "restart"), ("megatron_conservative", "stop"), ("megatron_aggressive", "restart")],
)
def test_a_job_is_judged_by_the_policy_that_its_spec_names_else_by_the_usual_one(
    name: str, action: str
) -> None:
    scene = Scene(policy="default")
    known = {each: load_policy(each) for each in shipped_policies()}
    scene.book = replace(scene.book, policies=known)
    scene.policy = name
    scene.spec()
    scene.train(range(1, 11))
    scene.line("communication")
    _crashed(scene)
    assert (scene.actions()[-1], scene.decisions[-1].policy) == (action, name or "default")


@pytest.mark.capability("S001-47")
def test_excludes_come_before_every_restart_list() -> None:
    scene = Scene(policy="megatron_transient")
    scene.spec()
    scene.train(range(1, 11))
    scene.line("host_oom", transient=True)
    _crashed(scene)
    assert scene.actions()[-1] == "stop"
    assert "excluded" in scene.decisions[-1].reason


@pytest.mark.capability("S001-13", "S001-73")
def test_an_unarmed_job_is_told_what_would_be_done() -> None:
    scene = Scene()
    scene.spec(armed=False)
    scene.train(range(1, 11))
    scene.line("nccl", transient=True)
    _crashed(scene)
    assert scene.actions()[-1] == "restart"
    assert "observing only" in scene.decisions[-1].reason
    assert scene.commands == []


@pytest.mark.capability("S001-13", "S001-73")
def test_a_watch_in_observe_mode_commands_nothing_for_an_armed_job() -> None:
    scene = Scene()
    scene.book = replace(scene.book, acting=False)
    scene.spec(armed=True)
    scene.train(range(1, 11))
    scene.line("nccl", transient=True)
    _crashed(scene)
    assert scene.actions()[-1] == "restart"
    assert scene.decisions[-1].reason.endswith("observing only: the watch is in observe mode")
    assert not scene.decisions[-1].armed
    assert scene.commands == []


def test_lines_sent_again_by_a_new_shipper_change_nothing() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 11))
    scene.offsets["n0"] = 3
    scene.line("oom", transient=False)
    assert scene.watch.job.state.held == ()
    scene.offsets["n0"] = 0
    scene.incarnation = "local:200:1"
    scene.progress(1)
    assert scene.watch.job.state.step is None


def test_the_old_attempts_last_lines_cannot_hurt_the_new_one() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 11))
    scene.line("nccl", transient=True)
    _crashed(scene)
    command = scene.commands[0]
    scene.accepted(command)
    scene.done(command, "local:200:1")
    scene.line("oom", transient=False)
    assert scene.watch.job.state.attempt == 2
    assert scene.watch.job.state.held == ()


def test_somebody_elses_restart_is_attempt_two_and_no_command() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 11))
    scene.line("nccl", transient=True)
    scene.ended()
    scene.incarnation = "local:200:1"
    scene.beat("n0")
    assert scene.watch.job.state.attempt == 2
    assert scene.actions()[-1] == "none"
    assert scene.commands == []


@pytest.mark.capability("S004-33")
def test_two_alive_at_once_hold() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 11))
    scene.incarnation = "local:200:1"
    scene.progress(1)
    assert scene.findings("two_alive") == [True]
    assert scene.actions()[-1] == "hold"
    scene.ended(incarnation=FIRST)
    assert scene.findings("two_alive") == [True, False]


def test_what_its_scheduler_starts_again_under_its_id_is_not_alive_beside_itself() -> None:
    scene = Scene(incarnation="slurm:7:0")
    scene.spec(incarnation="slurm:7:0")
    scene.train(range(1, 11))
    scene.incarnation = "slurm:7:1"
    scene.beat("n0")
    assert scene.watch.job.state.attempt == 2
    assert scene.findings("two_alive") == []
    assert scene.decisions == []


def test_a_requeue_whose_last_words_are_all_there_is_left_to_slurm() -> None:
    scene = Scene(incarnation="slurm:7:0")
    scene.spec(incarnation="slurm:7:0")
    scene.train(range(1, 11))
    scene.beat("n0", final=True)
    scene.say(SchedulerFact(JOB, "slurm:7:0", "7", "RUNNING", "REQUEUED", True, mode="ended"))
    assert [i.superseded_by for i in scene.settled()] == ["slurm:7:1"]
    assert scene.actions() == ["none"]


@pytest.mark.capability("S004-33")
def test_an_older_copy_that_lives_on_on_a_lost_node_holds_until_it_ends() -> None:
    scene = Scene(incarnation="slurm:7:0")
    scene.spec(incarnation="slurm:7:0")
    scene.train(range(1, 11))
    scene.incarnation = "slurm:7:1"
    began = scene.now
    scene.beat("n0")
    scene.incarnation = "slurm:7:0"
    scene.now += 30
    scene.beat("n0", made=began - 1, alive=True)
    assert scene.findings("two_alive") == [], "it was made before the new one began, and came late"
    scene.beat("n0", alive=True)
    assert scene.findings("two_alive") == [True]
    assert scene.actions()[-1] == "hold"
    scene.beat("n0", alive=False)
    assert scene.findings("two_alive") == [True, False]


def test_a_node_that_never_answers_again_is_given_up_and_named() -> None:
    scene = Scene(nodes=("n0", "n1"))
    scene.spec()
    scene.train(range(1, 21))
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words("n0")
    assert scene.settled() == []
    scene.now += 30
    scene.beat("n0")
    verdict = scene.settled()[-1].verdict
    assert (verdict.complete, verdict.given_up) == (False, ("n1",))


def test_a_late_contradiction_raises_the_revision_and_starts_nothing_twice() -> None:
    scene = Scene(nodes=("n0", "n1"))
    scene.spec()
    scene.train(range(1, 21))
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words("n0")
    scene.now += 30
    scene.beat("n0")
    assert len(scene.commands) == 1
    scene.line("oom", transient=False, node="n1", at=19)
    assert [i.revision for i in scene.settled()] == [1, 2]
    assert scene.settled()[-1].verdict.error_type == "oom"
    assert len(scene.commands) == 1


@pytest.mark.capability("S003-32")
def test_a_spike_of_the_loss_is_one_finding_and_no_restart() -> None:
    scene = Scene()
    scene.spec()
    for number in range(1, 40):
        scene.now += 1
        scene.progress(number, loss="9.0" if 20 <= number < 25 else "2.0")
        scene.beat("n0")
    assert scene.findings("loss_spike") == [True, False]
    assert scene.commands == []
    assert scene.actions() == ["none"]


def test_text_alone_never_kills() -> None:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 11))
    scene.line("nccl", transient=True)
    scene.beats(seconds=30)
    assert scene.commands == []
