"""A time limit reached with checkpoints: how it is told, and when the job is started again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.cli.printing import verdict_phrase
from midwatch.agents.policies import verdict
from midwatch.agents.policies.base import Clause, ClauseKind
from midwatch.agents.policies.conditions import Past
from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.agents.policies.reader import read_policy
from midwatch.agents.policies.writer import policy_text
from midwatch.rules.errors import RuleErrors
from midwatch.streams.records import Outcome
from unit.agents.detect.incident.scene import JOB, Scene
from unit.agents.policies.incidents import incident

CONTINUE = "policy: mine\non_time_limit: continue\nmodes:\n  crash:\n    kind: verdict\n"
STOP = CONTINUE.replace("continue", "stop")
BOUNDED = f"{CONTINUE}  timeout:\n    kind: always\n    max_restarts: 1\n"


def trained(policy: str = "") -> Scene:
    scene = Scene()
    scene.spec(policy_text=policy)
    scene.train(range(1, 21))
    return scene


def limit_reached(scene: Scene) -> None:
    scene.ended(exit_code=0, mode="timeout", error_type="slurm_failure", cluster="slurm")
    scene.last_words()


def resumed(scene: Scene, checkpoint: int | None) -> None:
    """The ordered restart is done."""
    command = scene.commands[-1]
    scene.accepted(command)
    scene.incarnation = f"local:{command.attempt + 100}:1"
    scene.say(
        Outcome(
            JOB,
            command.id,
            command.attempt,
            "restart",
            "done",
            "ok",
            new_incarnation=scene.incarnation,
            checkpoint_step=checkpoint,
        )
    )
    scene.sequences.clear()


def test_it_is_told_as_that_with_its_step_and_its_checkpoints() -> None:
    scene = trained()
    limit_reached(scene)
    (verdict,) = (incident.verdict for incident in scene.settled())
    assert (verdict.state, verdict.mode) == ("failed", "timeout")
    assert verdict_phrase(verdict) == "time limit reached at step 20"
    assert "resumes from the checkpoints in /ckpt" in verdict.remedy
    assert "on_time_limit: continue" in verdict.remedy
    assert scene.actions() == ["hold"], "a policy without the key decides as before"


def test_without_a_step_there_is_nothing_to_resume() -> None:
    scene = Scene()
    scene.spec(policy_text=CONTINUE)
    limit_reached(scene)
    (verdict,) = (incident.verdict for incident in scene.settled())
    assert verdict_phrase(verdict) == "time limit reached"
    assert "Ask for more time" in verdict.remedy
    assert scene.actions() == ["hold"]
    assert "no step" in scene.decisions[-1].reason


def test_a_policy_that_continues_restarts_as_often_as_the_job_gets_further() -> None:
    scene = trained(CONTINUE)
    for attempt in range(1, 6):
        limit_reached(scene)
        assert scene.actions() == ["restart"] * attempt
        assert "the time limit was reached, and this policy continues" in scene.decisions[-1].reason
        resumed(scene, 20 * attempt)
        scene.train(range(20 * attempt + 1, 20 * attempt + 21))


@pytest.mark.parametrize("checkpoint", [20, None])
def test_a_start_that_gets_no_further_is_not_repeated(checkpoint: int | None) -> None:
    scene = trained(CONTINUE)
    limit_reached(scene)
    resumed(scene, checkpoint)
    scene.train(range(15, 21))
    limit_reached(scene)
    assert scene.actions() == ["restart", "hold"]
    assert len(scene.commands) == 1


def test_the_clause_of_the_mode_bounds_it_and_stop_stops() -> None:
    scene = trained(BOUNDED)
    limit_reached(scene)
    resumed(scene, 20)
    scene.train(range(21, 41))
    limit_reached(scene)
    assert scene.actions() == ["restart", "stop"]
    scene = trained(STOP)
    limit_reached(scene)
    assert (scene.actions(), scene.commands) == (["stop"], [])


def test_the_line_of_slurm_about_the_limit_is_the_limit_too_and_another_cause_is_not() -> None:
    scene = trained(CONTINUE)
    scene.line("slurm_failure", transient=False, mode="timeout", text="CANCELLED DUE TO TIME LIMIT")
    limit_reached(scene)
    assert scene.actions() == ["restart"]
    scene = trained(CONTINUE)
    scene.line("oom", transient=False)
    limit_reached(scene)
    assert scene.actions() != ["restart"]
    assert verdict_phrase(scene.settled()[-1].verdict).startswith("timeout by oom")


def test_the_key_is_read_and_written_and_a_policy_without_it_keeps_its_text() -> None:
    for text in (CONTINUE, STOP):
        policy = read_policy("p.yaml", text.encode())
        assert read_policy("p.yaml", policy_text(policy).encode()) == policy
        assert f"on_time_limit: {policy.on_time_limit}" in policy_text(policy)
    assert all("on_time_limit" not in policy_text(load_policy(name)) for name in shipped_policies())


def test_another_word_is_an_error_with_its_place() -> None:
    with pytest.raises(RuleErrors) as raised:
        read_policy("p.yaml", CONTINUE.replace("continue", "perhaps").encode())
    (error,) = raised.value.errors
    assert str(error).startswith("p.yaml:2:16")


def test_a_stop_at_a_time_limit_blames_the_limit_and_no_failure() -> None:
    at_limit = incident(error_type="slurm_failure", mode="timeout")
    at_limit = replace(at_limit, verdict=replace(at_limit.verdict, transient=False))
    choice = verdict.judge(Clause(ClauseKind.VERDICT), at_limit, Past())
    assert (choice.action, choice.reason) == (
        "stop",
        "the time limit was reached: the same start would reach it again",
    )
