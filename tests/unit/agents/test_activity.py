"""One line for every step: old → new, action, reason, attempt n of N, old id → new id."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents import activity
from midwatch.streams.records import (
    CheckpointChoice,
    Command,
    Decision,
    Finding,
    Forwarded,
    Heartbeat,
    Hit,
    Incident,
    InForce,
    Line,
    Origin,
    Outcome,
    PersonAct,
    RefusedRules,
    SchedulerFact,
    SpecEvent,
    Tick,
    Verdict,
)

JOB = "night:me/gpt"
AT = 1_795_000_000_123
TIME = "2026-11-18T11:06:40.123Z"

OOM = Verdict("failed", "crash", "oom", root_file="a.log", root_line_number=7)
COMMAND = Command(
    "c0ffee" * 8, JOB, 1, 0, "restart", "slurm:41:0", "i1", 2, "a peer died", 0, 0, "decide", "s", "b", 2, 3
)
HIT = Hit(
    "peer",
    "consequence",
    "nccl",
    "nccl",
    "error",
    True,
    Line("peer closed", "rank_3.log", 9, 900, 1.0),
    9,
    "g",
)
OUTCOME = Outcome(JOB, COMMAND.id, 1, "restart", "done", "resumed", "41", "57", "slurm:57:0", 900, "i1")


@pytest.mark.parametrize(
    ("record", "line"),
    [
        pytest.param(
            SchedulerFact(JOB, "slurm:41:0", "41", "running", "failed", True, exit_code=137, reason="oom"),
            "running → failed, id 41, exit code 137, because oom",
            marks=pytest.mark.capability("S001-39"), id="the scheduler's state",
        ),
        (
            SchedulerFact(JOB, "slurm:41:0", "41", "", "cancelled", True, signal=15, by_person="ann"),
            "unseen → cancelled, id 41, signal 15, by ann",
        ),
        (
            SchedulerFact(
                JOB, "slurm:41:0", "41", "RUNNING", "RUNNING", False, saved=CheckpointChoice(40, "/c")
            ),
            "the checkpoint of step 40 is complete",
        ),
        pytest.param(
            Decision(JOB, 1, "i1", 2, "restart", "verdict", "transient", AT, True, 2, 3),
            "decided → restart, attempt 2 of 3, policy verdict, because transient",
            marks=pytest.mark.capability("S001-49"), id="a decision",
        ),
        (
            Decision(JOB, 1, "i1", 2, "restart", "always", "transient", AT, False, 2, None),
            "would decide (observing) → restart, attempt 2 of any number, policy always, because transient",
        ),
        (
            Decision(JOB, 1, "i1", 2, "stop", "verdict", "permanent", AT, True),
            "decided → stop, policy verdict, because permanent",
        ),
        pytest.param(
            COMMAND,
            "command → restart, attempt 2 of 3, command c0ffeec0ffee, because a peer died",
            marks=pytest.mark.capability("S001-50", "S001-54"), id="a command",
        ),
        pytest.param(
            OUTCOME,
            "restart → done, attempt 2 of 3, id 41 → 57, latest checkpoint: step 900, "
            "command c0ffeec0ffee, because resumed",
            marks=pytest.mark.capability("S001-53"), id="an outcome",
        ),
        (
            Incident("i1", JOB, 1, "x", "settled", 2, OOM),
            "incident → settled, attempt 1, crash by oom at a.log:7, revision 2",
        ),
        (
            Incident("i1", JOB, 1, "x", "suspected", 0, Verdict("unknown"), evidence=(HIT,)),
            "incident → suspected, attempt 1, nccl at rank_3.log:9, revision 0",
        ),
        (
            Finding(JOB, 1, "loss_spike", True, AT, "four times its mean"),
            "finding loss_spike → open, attempt 1, four times its mean",
        ),
        (SpecEvent(JOB, "ab" * 32, "verdict", True, 1, "/c"), "spec → abababababab, policy verdict, armed"),
    ],
)  # fmt: skip
@pytest.mark.capability("S002-09")
def test_each_step_is_one_line_with_its_time_and_job(record: object, line: str) -> None:
    assert activity.line(record, AT, command=COMMAND) == f"{TIME} {JOB}: {line}"


TOLD = Outcome(
    JOB, COMMAND.id, 1, "restart", "done", "resumed", "41", "57", "slurm:57:0", 900, "i1",
    checkpoint="/ckpt/step_900", checkpoint_written_ms=AT - 47_000,
)  # fmt: skip


@pytest.mark.capability("S000-11")
@pytest.mark.parametrize(
    ("outcome", "last_step", "phrase"),
    [
        (TOLD, 931, "told to load the checkpoint of step 900, written 47 s before, 31 steps lost"),
        (TOLD, 901, "told to load the checkpoint of step 900, written 47 s before, 1 step lost"),
        (TOLD, 900, "told to load the checkpoint of step 900, written 47 s before, 0 steps lost"),
        (TOLD, None, "told to load the checkpoint of step 900, written 47 s before"),
        (
            replace(TOLD, checkpoint=""),
            931,
            "latest checkpoint: step 900, written 47 s before, 31 steps lost",
        ),
        (
            replace(TOLD, checkpoint_written_ms=AT - 10_800_000),
            None,
            "told to load the checkpoint of step 900, written 3 h before",
        ),
        (
            replace(TOLD, checkpoint_written_ms=0, checkpoint_unit="epoch"),
            931,
            "told to load the checkpoint of epoch 900",
        ),
        (replace(TOLD, checkpoint_written_ms=0), 12, "told to load the checkpoint of step 900"),
    ],
)
def test_the_line_of_a_restart_tells_how_old_its_checkpoint_is_and_what_is_lost(
    outcome: Outcome, last_step: int | None, phrase: str
) -> None:
    line = activity.line(outcome, AT, command=COMMAND, last_step=last_step)
    assert f"id 41 → 57, {phrase}, command c0ffee" in str(line)


def test_a_forwarded_record_reads_as_itself() -> None:
    assert activity.line(Forwarded(OUTCOME), AT, command=COMMAND) == activity.line(
        OUTCOME, AT, command=COMMAND
    )


def test_an_act_names_the_person() -> None:
    assert activity.line(PersonAct(JOB, "disarm", "ann", 1.0), AT) == f"{TIME} {JOB}: ann → disarm"


def test_beats_and_ticks_are_no_steps() -> None:
    origin = Origin(JOB, "n0", 1, "local:1:2", "b", "s")
    assert activity.line(Heartbeat(origin, 1, 0.0, 0.0, 5.0, True, 0), AT) is None
    assert activity.line(Tick(1), AT) is None


def test_text_from_a_job_cannot_drive_a_terminal() -> None:
    fact = SchedulerFact(JOB, "x", "4\r1", "", "failed\x1b[2J", True, reason="a\nb\x07" + "é" + "z" * 900)
    line = activity.line(fact, AT)
    assert line is not None
    assert line.isprintable()
    assert "\\x1b[2J" in line
    assert "a\\nb\\x07é" in line
    assert len(line) < 700


def test_rules_that_come_into_force_or_are_refused_are_told_with_who_and_where() -> None:
    said = activity.line(InForce("ab" * 32, "push", "ada@gpu-01", AT), AT)
    assert said is not None
    assert said.endswith("rules: bundle abababababab → in force, pushed by ada@gpu-01")
    errors = ("mine.yaml:4:5: no such thing\n  Write another.", "mine.yaml:9:1: nor this")
    said = activity.line(RefusedRules("files", "ada@gpu-01", AT, errors), AT)
    assert said is not None
    assert "edit → refused, the last good bundle stays, because mine.yaml:4:5: no such thing" in said
    assert said.endswith("and 1 more")
    assert "\n" not in said
