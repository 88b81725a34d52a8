"""On the whole chain: `why` says from which checkpoint a new start really went on, or that it did not."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from integration.chain.installation import Installation, Job, installation
from integration.chain.resuming import begin, ended, why
from integration.chain.training import PROCESSES
from midwatch.agents.local.embedded.stack import Endpoints
from processes import wait_for

SOON = 120.0
AGE = r"the checkpoint was written \d+ s before"


@pytest.fixture(scope="module")
def watch(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        for name in PROCESSES:
            made.start(name)
        made.ready()
        yield made


@pytest.fixture(scope="module")
def jobs(watch: Installation, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Job]:
    """One job of each habit; all of them run at once, and have come to their ends."""
    place = tmp_path_factory.mktemp("jobs")
    options = {"resumes": (), "from_zero": (), "ignores": ("--max-restarts=1",), "meets_late": ()}
    begun = {habit: begin(watch, place / habit, habit, *more) for habit, more in options.items()}
    well = ("restart", "none")  # it ended as it meant to
    expected = {
        "resumes": well,
        "from_zero": well,
        "ignores": ("restart", "stop"),
        "meets_late": ("restart", *well),
    }
    for habit, job in begun.items():
        wait_for(lambda job=job, a=expected[habit]: ended(job, *a), f"{habit} is decided", SOON)  # type: ignore[misc] # bound at once
        kind = "checkpoint_ignored" if habit == "ignores" else "resumed"
        wait_for(lambda job=job, kind=kind: bool(job.findings(kind)), f"{habit} is judged", SOON)  # type: ignore[misc] # bound at once
    return begun


@pytest.mark.capability("S000-11", "S002-05")
def test_a_start_that_resumes_is_told_with_age_and_path_and_the_torn_newest_is_passed_over(
    jobs: dict[str, Job],
) -> None:
    job = jobs["resumes"]
    path = job.directory / "checkpoints" / "step_40"
    text = why(job)
    assert (path.parent / "step_50").exists(), "a torn one is newer"
    assert re.search(
        r"told to load the checkpoint of step 40, written \d+ s before, 5 steps lost, command", text
    )
    assert re.search(rf"resumed: resumed from 40: its first step is 41; {AGE}; 5 steps lost \({path}\)", text)
    assert re.search(
        rf"told to load the checkpoint of step 40, written \d+ s before, 5 steps lost \({path}\)", text
    )
    assert not job.findings("checkpoint_ignored")
    (finding,) = job.findings("resumed")
    assert finding.quantities["checkpoint"] == str(path)
    assert (finding.quantities["checkpoint_step"], finding.quantities["steps_lost"]) == ("40", "5")


def test_a_restarted_job_whose_ranks_do_not_meet_at_once_is_tried_again(jobs: dict[str, Job]) -> None:
    first, second, _ = jobs["meets_late"].decisions()
    assert (first.reason, second.reason) == ("nccl_timeout is transient", "rendezvous is transient")
    assert "resumed from 40: its first step is 41;" in why(jobs["meets_late"])


def test_where_counters_start_at_zero_the_checkpoints_own_number_is_a_resume(jobs: dict[str, Job]) -> None:
    assert "resumed from 40: its first step is 40;" in why(jobs["from_zero"])


def test_a_start_that_begins_below_its_checkpoint_is_a_finding_with_its_remedy_and_uses_the_budget(
    jobs: dict[str, Job],
) -> None:
    job = jobs["ignores"]
    (finding,) = (f for f in job.findings("checkpoint_ignored") if f.open)
    assert finding.detail.startswith("went on at 1, below the checkpoint of step 40, written ")
    assert "let the training load MIDWATCH_RESUME_FROM" in finding.detail
    assert finding.quantities["steps_lost"] == "5"
    assert not job.findings("resumed")
    stopped = job.decisions()[-1]
    assert (stopped.action, stopped.reason) == ("stop", "the job's own budget is spent: 1 of 1 restarts")
    assert not job.findings("blind"), "its steps are seen all the same"
    text = why(job)
    assert "went on at 1, below the checkpoint of step 40" in text
    assert re.search(r"checkpoint +of step 40, written \d+ s before the end", text), (
        "also of the last failure"
    )
    assert "--resume-arg" in text
