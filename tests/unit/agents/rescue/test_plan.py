"""What a person's restart will do, and when there is none to plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from midwatch.agents.query.timeline import Attempt, Timeline
from midwatch.agents.rescue.job_config import find_config
from midwatch.agents.rescue.plan import FIRST_SEQ, make_plan
from midwatch.agents.rescue.yaml_patch import Wanted
from midwatch.streams.errors import UsageError
from midwatch.streams.records import Command, Incident, Outcome, Spec, Verdict

JOB, NOW = "local:ann/run", 1_000_000
VERDICT = Verdict("failed", "crash", "cuda_oom", "memory")
INCIDENT = Incident(f"{JOB}#1", JOB, 1, "local:1:2", "settled", 1, VERDICT)
BIT = Wanted("size", "16")


def spec(directory: Path, *argv: str) -> Spec:
    words = argv or ("python", "t.py", "--config", "c.yaml")
    return Spec(JOB, "local", words, str(directory), {}, "ann", (), str(directory / "ckpt"), "verdict", False)


def command(issuer: str, expires_ms: int = 0) -> Command:
    return Command(
        "c1", JOB, 1, FIRST_SEQ, "restart", "local:1:2", INCIDENT.id, 1, "", 0, expires_ms, issuer, "", ""
    )


def outcome(state: Literal["refused", "failed", "accepted", "done"]) -> Outcome:
    return Outcome(JOB, "c1", 1, "restart", state, "why", new_incarnation="local:9:9")


def ended(directory: Path, **more: object) -> Timeline:
    attempt = Attempt(1, **({"incident": INCIDENT} | more))  # type: ignore[arg-type] # its own fields
    return Timeline(JOB, (attempt,), "local:1:2", signed=spec(directory))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "c.yaml").write_text("size: 32  # large\nresume_from:\n")
    folder = tmp_path / "ckpt" / "step_4"
    folder.mkdir(parents=True)
    (folder / "model.json").write_text("{}")
    (folder.parent / "latest").symlink_to("step_4")
    return tmp_path


def test_a_plan_names_the_clone_the_changes_and_the_checkpoint_and_writes_nothing(directory: Path) -> None:
    before = sorted(directory.rglob("*"))
    plan = make_plan(ended(directory), NOW, wanted=(BIT,))
    assert plan.edit is not None
    assert plan.edit.clone.name == "c-resume.yaml"
    assert plan.edit.text == f"size: 16  # large\nresume_from: {directory}/ckpt/step_4\n"
    assert "\n-size: 32  # large\n" in plan.edit.diff
    assert (plan.seq, plan.restarts, plan.point and plan.point.step) == (FIRST_SEQ, 0, 4)
    assert sorted(directory.rglob("*")) == before
    same = make_plan(ended(directory), NOW, same=True)
    assert (same.edit, same.spec) == (None, spec(directory))


def test_an_earlier_clone_of_other_content_is_never_written_over(directory: Path) -> None:
    (directory / "c-resume.yaml").write_text("size: 8\n")
    plan = make_plan(ended(directory), NOW, wanted=(BIT,))
    assert plan.edit is not None
    assert plan.edit.clone.name == "c-resume-2.yaml"
    timeline = replace(ended(directory), signed=spec(directory, "python", "--config=c-resume.yaml"))
    again = make_plan(timeline, NOW, wanted=(Wanted("size", "4"),))
    assert again.edit is not None
    assert again.edit.clone.name == "c-resume-2.yaml"


def test_a_person_need_not_wait_for_the_last_lines_of_a_reported_end(directory: Path) -> None:
    reported = replace(INCIDENT, state="ended", words=("scheduler",))
    assert make_plan(ended(directory, incident=reported), NOW, same=True).incident == reported


def test_after_a_refused_command_the_next_one_has_another_number(directory: Path) -> None:
    refused = ended(directory, commands=(command("person:ann"),), outcomes=((1, outcome("refused")),))
    assert make_plan(refused, NOW, same=True).seq == FIRST_SEQ + 1
    unanswered = ended(directory, commands=(command("person:ann", NOW - 1),))
    assert make_plan(unanswered, NOW, same=True).seq == FIRST_SEQ + 1
    by_decide = ended(directory, commands=(command("midwatch-decide"),), outcomes=((1, outcome("failed")),))
    assert make_plan(by_decide, NOW, same=True).seq == FIRST_SEQ


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"incident": replace(INCIDENT, state="ended")}, "has not ended, as far as the watch knows"),
        ({"incident": None}, "has not ended"),
        ({"incident": replace(INCIDENT, superseded_by="local:5:5")}, "already, as local:5:5"),
        ({"commands": (command("x", NOW + 1),)}, "already acts on attempt 1"),
        ({"commands": (command("x"),), "outcomes": ((1, outcome("accepted")),)}, "already acts on attempt 1"),
        ({"commands": (command("x"),), "outcomes": ((1, outcome("done")),)}, "already, as local:9:9"),
    ],
)
def test_a_job_that_runs_or_was_started_again_gets_no_second_start(
    directory: Path, change: dict[str, object], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        make_plan(ended(directory, **change), NOW, wanted=(BIT,))


def test_a_job_without_a_spec_is_refused_with_the_remedy(directory: Path) -> None:
    with pytest.raises(UsageError, match="midwatch run -- COMMAND"):
        make_plan(replace(ended(directory), signed=None), NOW, same=True)


@pytest.mark.parametrize(
    ("argv", "wanted", "why"),
    [
        (("python", "t.py"), "", "no YAML file"),
        (("python", "a.yaml", "b.yaml"), "", "several: a.yaml, b.yaml"),
        (("python", "a.yaml"), "b.yaml", "no b.yaml"),
        (("python", "gone.yaml"), "", "cannot be read here"),
    ],
)
def test_a_configuration_that_is_not_clear(
    directory: Path, argv: tuple[str, ...], wanted: str, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        find_config(spec(directory, *argv), wanted)


def test_a_configuration_within_a_word_or_by_its_bare_name(directory: Path) -> None:
    (directory / "conf").mkdir()
    (directory / "conf" / "c.yaml").write_text("a: 1\n")
    found = find_config(spec(directory, "sh", "-c", "python t.py --config=conf/c.yaml x.yaml"), "c.yaml")
    assert (found.name, found.word, found.text) == ("conf/c.yaml", 2, "a: 1\n")
