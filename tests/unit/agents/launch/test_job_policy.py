"""A job may bring its own policy file: it judges that job alone, and may have a hung job ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.decide.state import DecideState
from midwatch.agents.launch.job_policy import JobPolicy, job_policy
from midwatch.agents.policies.loader import load_policy
from midwatch.rules.errors import RuleErrors
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records import LINES_READ, Outcome, SpecEvent, codec
from midwatch.streams.settings.schema import RulesSettings, Settings
from unit.agents.detect.incident.scene import JOB, Scene
from unit.rules.oellm.fixture_files import FIXTURES

GENTLE = "policy: gentle\nmodes:\n  crash: {kind: selective, max_restarts: 1, default: hold}\n"
CANCEL = str(FIXTURES / "gen3/job/guarded.yaml")
RUN = str(FIXTURES / "gen1/experiments/run.yaml")


def own(tmp_path: Path, text: str, name: str = "mine.yaml") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def scene(policy: JobPolicy, *, armed: bool = True) -> Scene:
    job = Scene()
    job.policy = policy.name
    job.book = Rulebook({"verdict": load_policy("verdict")}, lambda command: command, acting=True)
    job.spec(policy_text=policy.text, limits=policy.limits, any_line=policy.any_line, armed=armed)
    return job


def test_decide_judges_a_job_by_the_policy_that_it_brings(tmp_path: Path) -> None:
    brought = job_policy(own(tmp_path, GENTLE), Settings())
    assert (brought.name, brought.limits, brought.any_line) == ("gentle", {}, False)
    job = scene(brought)
    job.now += 10
    job.line("nccl_timeout", transient=True)
    job.ended()
    job.last_words()
    assert (job.actions(), job.decisions[-1].policy) == (["hold"], "gentle")
    usual = scene(JobPolicy("verdict"))
    usual.now += 10
    usual.line("nccl_timeout", transient=True)
    usual.ended()
    usual.last_words()
    assert (usual.actions(), usual.decisions[-1].policy) == (["restart"], "verdict")


def test_a_shipped_policy_s_name_of_one_s_own_means_one_s_own(tmp_path: Path) -> None:
    brought = job_policy(own(tmp_path, GENTLE.replace("gentle", "verdict")), Settings())
    job = scene(brought)
    job.now += 10
    job.line("nccl_timeout", transient=True)
    job.ended()
    job.last_words()
    assert job.actions() == ["hold"]


def test_what_a_job_brings_survives_the_wire_and_the_state() -> None:
    brought = job_policy(RUN, Settings())
    event = SpecEvent(
        JOB, "h", brought.name, True, 1, "", brought.limits, policy_text=brought.text, any_line=True
    )
    assert codec.decode(codec.encode(event)) == event
    state = DecideState(spec=event)
    assert codec.state_from_bytes(codec.state_to_bytes(state), DecideState) == state


def test_a_policy_that_cannot_be_read_holds_the_job_and_says_why() -> None:
    job = scene(JobPolicy("newer", "policy: newer\nmodes: {crash: {kind: wise}}\n"))
    job.now += 10
    job.line("nccl_timeout", transient=True)
    job.ended()
    job.last_words()
    assert job.actions() == ["hold"]
    assert (
        "the policy 'newer' that the job brings cannot be read: `kind` is 'wise'" in job.decisions[-1].reason
    )


@pytest.mark.capability("S001-83")
def test_what_decide_knows_by_name_is_not_brought() -> None:
    assert job_policy("", Settings()) == JobPolicy()
    assert job_policy("megatron_transient", Settings()) == JobPolicy("megatron_transient")
    assert job_policy(RUN, Settings(policy=RUN)) == JobPolicy(RUN)


def test_mistakes_come_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no policy called 'gentel'"):
        job_policy("gentel", Settings())
    with pytest.raises(ConfigurationError, match="cannot be read"):
        job_policy("nowhere.yaml", Settings())
    with pytest.raises(RuleErrors):
        job_policy(own(tmp_path, GENTLE.replace("hold", "wait")), Settings())


@pytest.mark.capability("S001-33")
def test_the_threshold_of_a_foreign_file_is_the_job_s_own_silence_limit() -> None:
    brought = job_policy(RUN, Settings())
    assert (brought.limits["training"], brought.limits["startup"], brought.any_line) == (600.0, 600.0, True)
    job = scene(brought)
    job.train(range(1, 6))
    job.beats(seconds=590)
    assert job.settled() == []
    job.beats(seconds=20)
    assert [incident.verdict.mode for incident in job.settled()] == ["stall"]


def test_any_new_line_of_such_a_job_ends_its_silence() -> None:
    job = scene(job_policy(RUN, Settings()))
    lines = 0
    for _ in range(20):
        job.beats(seconds=300)
        lines += 1
        job.now += 5
        job.beat("n0", samples={LINES_READ: lines})
    assert job.settled() == []
    for _ in range(130):
        job.now += 5
        job.beat("n0", samples={LINES_READ: lines})
    assert [incident.verdict.mode for incident in job.settled()] == ["stall"]


def test_of_other_jobs_only_progress_ends_the_silence() -> None:
    job = Scene()
    job.spec()
    job.train(range(1, 6))
    for lines in range(1, 20):
        job.now += 5
        job.beat("n0", samples={LINES_READ: lines})
    assert [incident.verdict.mode for incident in job.settled()] == ["stall"]


def test_how_retries_are_counted_is_the_settings_choice() -> None:
    compat = Settings(rules=RulesSettings(retries="compat"))
    assert "max_restarts: 2" in job_policy(RUN, compat).text
    assert "max_restarts: 3" in job_policy(RUN, Settings()).text


def test_it_is_told_that_nothing_acts_until_armed() -> None:
    assert any("midwatch acts only on armed jobs" in str(note) for note in job_policy(RUN, Settings()).notes)


def hung(armed: bool = True) -> Scene:
    job = scene(job_policy(CANCEL, Settings()), armed=armed)
    job.train(range(1, 6))
    job.beats(seconds=600)
    return job


def test_a_cancel_of_a_job_that_hangs_is_ordered_once() -> None:
    job = hung()
    assert job.actions() == ["cancel"]
    (command,) = job.commands
    assert (command.action, command.incarnation, command.attempt) == ("cancel", job.incarnation, 1)
    job.say(Outcome(JOB, command.id, 1, "cancel", "accepted", "ok"))
    job.say(Outcome(JOB, command.id, 1, "cancel", "done", "ended"))
    job.ended(error_type="cancelled", mode="crash")
    job.last_words()
    assert [c.id for c in job.commands] == [command.id]
    assert job.watch.decided.restarts == {}, "a cancel costs no restart"


def test_a_cancel_of_a_job_that_is_not_armed_is_only_told() -> None:
    job = hung(armed=False)
    assert (job.actions(), job.commands) == (["cancel"], [])
    assert "observing only: the job is not armed" in job.decisions[-1].reason


def test_a_line_alone_ends_no_running_job() -> None:
    job = scene(job_policy(CANCEL, Settings()))
    job.train(range(1, 6))
    job.line("unknown", text="time is over")
    job.beats(seconds=30)
    assert (job.actions(), job.commands) == ([], [])


def test_a_job_that_has_ended_is_stopped_and_not_cancelled() -> None:
    job = scene(job_policy(CANCEL, Settings()))
    job.train(range(1, 6))
    job.ended()
    job.last_words()
    assert "cancel" not in job.actions()
    assert all(command.action != "cancel" for command in job.commands)


def test_a_cancel_that_came_too_late_is_ordered_again_under_the_next_number() -> None:
    job = hung()
    (first,) = job.commands
    job.say(Outcome(JOB, first.id, 1, "cancel", "expired", "too late"))
    assert [(c.action, c.seq) for c in job.commands] == [("cancel", 1), ("cancel", 2)]
