"""A cancelled job whose lines go on is not started a second time."""

from __future__ import annotations

from unit.agents.conftest import Watch

STEPS = "".join(f"step: {step}  loss:  2.{step}\n" for step in range(10, 30))
LOST = "WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers\n"


def wheels(count: int) -> str:
    return "".join(f"wheel {at} of the toy is painted\n" for at in range(count))


def test_a_launcher_that_lost_its_terminal_is_started_again(watch: Watch) -> None:
    assert watch(STEPS + wheels(9) + LOST).decision.action == "restart"
    assert watch(STEPS + wheels(9) + LOST + wheels(20)).decision.action == "restart"


def test_a_job_that_prints_on_behind_its_cancel_is_not_started_beside_itself(watch: Watch) -> None:
    done = watch(STEPS + wheels(9) + LOST + wheels(70))
    assert (done.verdict.error_type, done.decision.action) == ("cancelled", "hold")
    assert done.decision.reason == "the job's lines go on behind log:30, so something of it may still run"


def test_what_another_program_prints_behind_a_cancel_is_none_of_the_job(watch: Watch) -> None:
    other = wheels(70).replace("painted", "sent to the shop")
    assert watch(STEPS + wheels(9) + LOST + other).decision.action == "restart"
