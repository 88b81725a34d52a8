"""A job that ends with exit code 0 though an exception left its script: a pipe may hide the exit code."""

from __future__ import annotations

from midwatch.streams.records import Role
from unit.agents.detect.incident.scene import Scene

LEFT = {"left_the_script": "1"}


def ended_well(
    *, captures: dict[str, str] = LEFT, role: Role = "cause", more: int = 0, total: int | None = None
) -> Scene:
    """A job that makes 20 steps, raises, makes `more` steps and ends with exit code 0."""
    scene = Scene()
    scene.spec()
    for number in range(1, 21):
        scene.now += 1
        scene.progress(number, total=total)
    scene.line("exception", role=role, text="KeyError: 'toy'", captures=captures)
    for number in range(21, 21 + more):
        scene.now += 1
        scene.progress(number, total=total)
    scene.ended(exit_code=0)
    scene.last_words()
    return scene


def test_the_scheduler_s_word_counts_and_a_finding_tells_of_the_exception() -> None:
    scene = ended_well()
    assert scene.settled()[-1].verdict.state == "healthy"
    assert scene.actions()[-1] == "none"
    assert scene.findings("end_contradicted") == [True]


def test_an_exception_that_the_program_caught_contradicts_nothing() -> None:
    assert ended_well(captures={}).findings("end_contradicted") == []


def test_further_steps_show_that_it_ended_nothing() -> None:
    assert ended_well(more=3).findings("end_contradicted") == []


def test_the_last_step_or_the_job_s_own_word_of_success_outweighs_it() -> None:
    assert ended_well(total=20).findings("end_contradicted") == []
    scene = Scene()
    scene.spec()
    scene.progress(7, total=None)
    scene.line("done", role="success")
    scene.line("exception", captures=LEFT)
    scene.ended(exit_code=0)
    scene.last_words()
    assert scene.findings("end_contradicted") == []


def test_a_job_that_failed_needs_no_such_finding() -> None:
    scene = Scene()
    scene.spec()
    scene.progress(7, total=None)
    scene.line("exception", captures=LEFT)
    scene.ended(exit_code=1)
    scene.last_words()
    assert scene.settled()[-1].verdict.state == "failed"
    assert scene.findings("end_contradicted") == []
