"""Foreign configurations on the real path: lines, silence and the scheduler's word in, decisions out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.policies.oellm import RetryCounting
from midwatch.agents.rulesets.bundles import policies_of, watched_rules
from midwatch.agents.rulesets.draft import read_draft
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.rules.loader import load_bundle
from midwatch.streams.lines.normalise import normalise
from midwatch.streams.records import Chunk, Generation, Section
from midwatch.streams.settings.schema import RulesSettings, Settings
from unit.agents.detect.incident.scene import FIRST, START_S, Scene
from unit.rules.oellm.fixture_files import FIXTURES

RUN = str(FIXTURES / "gen1/experiments/run.yaml")


def scene(path: str, counting: RetryCounting = RetryCounting.DOCUMENTED) -> Scene:
    """An armed job under the policy of a file."""
    policy = load_policy(path, counting)
    found = Scene(limits=WatchLimits(**{str(k): v for k, v in load_bundle(path).silence.items()}))
    found.policy = policy.name
    found.book = Rulebook({policy.name: policy}, lambda command: command, policy.name, acting=True)
    found.spec()
    return found


def fail_and_restart(job: Scene, number: int) -> None:
    """One attempt that ends by an NCCL timeout; a command for it is accepted and carried out."""
    job.now += 10
    before = len(job.commands)
    job.line("nccl_timeout", text="NCCL timeout")
    job.ended()
    job.last_words()
    for command in job.commands[before:]:
        job.accepted(command)
        job.done(command, f"local:{number}:2")
        job.incarnation = f"local:{number}:2"
        job.now += 1
        job.beat("n0")


@pytest.mark.parametrize(("counting", "restarts"), [(RetryCounting.DOCUMENTED, 3), (RetryCounting.COMPAT, 2)])
@pytest.mark.capability("S001-42", "S001-54", "S001-75")
def test_three_retries_are_three_restarts_as_documented_and_two_as_their_code_counts(
    counting: RetryCounting, restarts: int
) -> None:
    job = scene(RUN, counting)
    for number in range(5):
        fail_and_restart(job, number)
        if job.actions()[-1] != "restart":
            break
    assert len(job.commands) == restarts
    assert job.actions()[-1] == "stop"
    assert "the budget is spent" in job.decisions[-1].reason


@pytest.mark.capability("S002-06")
def test_the_limit_is_the_one_that_the_file_sets(tmp_path: Path) -> None:
    file = tmp_path / "ten.yaml"
    file.write_text(
        "policies:\n  - mode: crash\n    implementation: {class_name: AlwaysRestartPolicy, max_retries: 10}\n"
        "log_signals:\n  - {name: lost, pattern: lost, state: {class_name: CrashState}}\n"
    )
    job = scene(str(file))
    for number in range(12):
        fail_and_restart(job, number)
    assert len(job.commands) == 10
    assert job.actions()[-1] == "stop"


@pytest.mark.capability("S001-80")
def test_documented_counting_has_a_budget_for_each_mode() -> None:
    job = scene(RUN)
    for number in range(3):
        fail_and_restart(job, number)
    job.now += 10
    job.ended(mode="timeout", error_type="timeout")
    job.last_words()
    last = job.decisions[-1]
    assert (last.action, last.restart_number, last.restart_limit) == ("restart", 1, 1)


def test_compatible_counting_spends_one_budget_on_every_mode() -> None:
    job = scene(RUN, RetryCounting.COMPAT)
    fail_and_restart(job, 1)
    job.now += 10
    job.ended(mode="timeout", error_type="timeout")
    job.last_words()
    assert job.actions()[-1] == "stop"
    assert "the budget is spent: 1 of 0" in job.decisions[-1].reason


@pytest.mark.capability("S002-08")
def test_a_cooldown_makes_the_command_wait() -> None:
    job = scene(str(FIXTURES / "gen2/monitoring/plain.yaml"))
    for number in (1, 2):
        job.now += 10
        job.line("slurm_failure", text="lost node n7")
        job.ended()
        job.last_words()
        job.accepted(job.commands[-1])
        job.done(job.commands[-1], f"local:{number}:9")
        job.incarnation = f"local:{number}:9"
        job.beat("n0")
    first, second = job.commands
    assert second.not_before_ms == first.not_before_ms + 120_000
    assert second.expires_ms - second.not_before_ms == first.expires_ms - first.not_before_ms


@pytest.mark.capability("S001-33")
def test_a_job_is_stalled_when_nothing_at_all_was_written_for_the_threshold() -> None:
    job = scene(RUN)
    watched = watched_rules((RUN,))
    offset = 0
    for _ in range(20):  # 20 times 55 s of lines that no rule knows, never 600 s of nothing
        job.beats("n0", seconds=55)
        lines = normalise(b"still loading the data\n")
        offset += lines.lines * 23
        section = Section(
            path="/l/a",
            generation=Generation(1, 1, "/l/a"),
            size=len(lines.text),
            lines=1,
            anchors=lines.placed(offset - 23, 1),
            end=offset,
            read_before=START_S,
            read_at=START_S + job.now,
        )
        chunk = Chunk(job.origin("n0"), (section,), lines.text)
        found = match(chunk, watched.rules, watched.hash, 0, any_line=watched.any_line)
        assert found is not None
        job.say(found)
    assert job.settled() == []
    job.beats("n0", seconds=620)
    assert [i.verdict.mode for i in job.settled()] == ["stall"]
    assert job.actions() == ["restart"]


def test_a_line_that_only_lives_is_told_by_its_place() -> None:
    lines = normalise(b"one\ntwo\n")
    section = Section("/l", Generation(1, 1, "/l"), 8, 2, lines.placed(100, 41), 108, 0.0, 7.0)
    chunk = Chunk(Scene().origin("n0"), (section,), lines.text)
    rules = watched_rules((RUN,)).rules
    assert match(chunk, rules, "h", 0) is None
    found = match(chunk, rules, "h", 0, any_line=True)
    assert found is not None
    (column,) = found.progress
    assert (column.steps, column.ends, column.numbers, column.times) == ((-1,), (108,), (42,), (7.0,))
    repeated = replace(section, context=2)
    assert match(Chunk(chunk.origin, (repeated,), chunk.text), rules, "h", 0, any_line=True) is None


def test_settings_that_name_such_files_just_work(tmp_path: Path) -> None:
    rules = RulesSettings(presets=(), directories=(Path(RUN),), retries="compat")
    settings = Settings(policy=RUN, rules=rules, state_directory=tmp_path)
    policy = policies_of(settings)[RUN]
    assert [clause.max_restarts for clause in policy.clauses.values()][:3] == [2, 1, 0]
    silence = read_draft(settings).record.silence
    assert {silence[phase] for phase in ("training", "startup", "checkpoint")} == {600.0}


def test_a_person_s_cancel_is_left_alone_though_the_file_restarts_cancelled_jobs() -> None:
    job = scene(RUN)
    job.now += 10
    job.beat("n0")
    job.ended(error_type="cancelled", by_person="ada", incarnation=FIRST)
    job.last_words()
    assert (job.actions(), job.commands) == (["none"], [])
