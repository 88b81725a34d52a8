"""What `why` and `jobs` tell of the records in the topics."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest

from midwatch.agents.activity import moment
from midwatch.agents.cli.ask.shared import timeline_json
from midwatch.agents.cli.printing import columns, incident_rows, job_rows, timeline_text
from midwatch.agents.executor.arming import Arming
from midwatch.agents.query.timeline import Timed, Timeline, find_jobs, timeline, timelines
from midwatch.streams.records import (
    Chance,
    CheckpointChoice,
    Command,
    Decision,
    Finding,
    Forwarded,
    Generation,
    Heartbeat,
    Hit,
    Hits,
    Incident,
    Line,
    Origin,
    Outcome,
    PersonAct,
    Progress,
    Rival,
    SchedulerFact,
    Snapshot,
    Spec,
    SpecEvent,
    Verdict,
)
from unit.agents.detect.incident.scene import JOB as SCENE_JOB
from unit.agents.detect.incident.scene import Scene

JOB = "night:me/gpt"
NOW = 1_795_000_000_000
ORIGIN = Origin(JOB, "n3", 2, "slurm:41:0", "boot", "s")
LINE = Line(
    "RuntimeError: NCCL timed out\x1b[31m", "/logs/rank_3.log", 812, 4_000, 1.0, "n3", rank=3, raw=b"\xff"
)
HIT = Hit("nccl_timeout", "cause", "nccl_timeout", "comms", "critical", True, LINE, 4_100, "g")
TIMEOUT = Verdict(
    "failed", "crash", "nccl_timeout", "comms", "nccl", True, LINE.text, LINE.path, 812, "n3", 3, 120,
    "training", "Look at rank 3.", "nccl_timeout", "b",
)  # fmt: skip
OOM = Verdict("failed", "crash", "oom", "memory", "cuda", False, "CUDA out of memory", "/logs/rank_0.log", 9)
ARMED, OBSERVED = Arming(True, "armed when it was started"), Arming(False, "nobody armed it")
FIRST = Incident("i1", JOB, 1, "slurm:41:0", "settled", 1, TIMEOUT, (HIT,), opened_ms=NOW)
RESTART = Decision(
    JOB,
    1,
    "i1",
    1,
    "restart",
    "verdict",
    "transient",
    NOW,
    True,
    1,
    3,
    ("stall: matched, but excluded",),
    "c" * 64,
)
COMMAND = Command("c" * 64, JOB, 1, 0, "restart", "slurm:41:0", "i1", 1, "r", 0, 0, "d", "s", "b", 1, 3)
DONE = Outcome(JOB, "c" * 64, 1, "restart", "done", "resumed", "41", "57", "slurm:57:0", 100, "i1")
SECOND = Incident("i2", JOB, 2, "slurm:57:0", "settled", 1, OOM, opened_ms=NOW + 9)
STOP = Decision(JOB, 2, "i2", 1, "stop", "verdict", "permanent: the same start would fail again", NOW, True)
RESCUE = (FIRST, RESTART, COMMAND, DONE, Forwarded(DONE))
BLIND = Finding(JOB, 1, "blind", True, NOW, "no beat of a node that printed progress")


def beat(at_ms: int) -> Timed:
    return Timed(at_ms, Heartbeat(ORIGIN, 1, 0.0, 0.0, 5.0, True, 0))


def told(*records: object, beats: tuple[int, ...] = ()) -> Timeline:
    timed = [Timed(NOW + n, record) for n, record in enumerate(records)] + [beat(at) for at in beats]
    return timeline(JOB, timed)


def why(one: Timeline, now_ms: int = NOW) -> str:
    return "\n".join(line.plain for line in timeline_text(one, now_ms))


@pytest.mark.capability("S000-01", "S001-76", "S001-53", "S000-06", "S000-07")
def test_why_tells_verdict_root_line_decision_and_what_was_done() -> None:
    text = why(told(*RESCUE, SECOND, STOP))
    first, second = text.index("\nattempt 1"), text.index("\nattempt 2")
    assert second < first, "the latest attempt comes first"
    assert "crash by oom (memory), permanent" in text[second:first]
    assert "/logs/rank_0.log:9  CUDA out of memory" in text[second:first]
    assert "stop, policy verdict: permanent: the same start would fail again" in text[second:first]
    assert "crash by nccl_timeout (comms), transient" in text[first:]
    assert "/logs/rank_3.log:812  RuntimeError: NCCL timed out\\x1b[31m" in text[first:]
    assert "node n3, rank 3, step 120, phase training" in text[first:]
    assert "/logs/rank_3.log:812 [n3, rank 3]  cause nccl_timeout" in text[first:]
    assert "restart attempt 1 of 3, policy verdict: transient" in text[first:]
    assert "issued → done, id 41 → 57, latest checkpoint: step 100" in text[first:]
    assert "\x1b" not in text


def test_an_end_that_the_scheduler_has_not_yet_told_gets_no_advice() -> None:
    unknown = Verdict(state="unknown", mode="ended", error_type="unknown", remedy="set NCCL_DEBUG=INFO")
    ended = replace(FIRST, state="ended", verdict=unknown)
    assert "the attempt ended; how, is not known yet, ended" in why(told(ended))
    assert "NCCL_DEBUG" not in why(told(ended))
    settled = why(told(replace(ended, state="settled")))
    assert "unknown: no line says why" in settled
    assert "NCCL_DEBUG" in settled


def test_what_a_start_was_told_is_not_called_resumed() -> None:
    detail = "was told to load the checkpoint of step 20"
    finding = Finding(JOB, 2, "resumed", False, NOW, detail)
    assert f"checkpoint: {detail}" in why(told(*RESCUE, finding))
    assert f"resumed: {detail}" not in why(told(*RESCUE, finding))


def test_the_step_of_a_restart_tells_the_checkpoints_age_and_the_steps_that_are_lost() -> None:
    loaded = replace(DONE, checkpoint="/ckpt/step_100", checkpoint_written_ms=NOW - 60_000)
    one = told(FIRST, RESTART, COMMAND, loaded)
    phrase = "told to load the checkpoint of step 100, written 60 s before, 20 steps lost"
    assert why(one).count(phrase) == 2, "of the command, and among all steps"
    assert phrase in str(timeline_json(one, NOW)["steps"][-1]["line"])


RESUMED = Finding(JOB, 2, "resumed", False, NOW, "resumed from 100: its first step is 101; 20 steps lost")


def test_jobs_tells_from_where_the_attempt_that_runs_went_on() -> None:
    assert row(told(*RESCUE, RESUMED))[-1] == RESUMED.detail
    assert row(told(*RESCUE, RESUMED, SECOND))[-1] == "crash by oom (memory), permanent", (
        "the end outweighs it"
    )
    assert row(told(*RESCUE, replace(RESUMED, attempt=1)))[-1] == "", "that of an earlier attempt is over"


def test_why_tells_how_often_a_restart_was_right_after_such_an_end() -> None:
    like = "nccl_timeout, transient, after a step"
    alike = Chance(0.7134, 12, 17, like, own_passed=3, own=4, outcomes="a" * 64)
    one = told(replace(FIRST, verdict=replace(TIMEOUT, chance=alike)), RESTART)
    labelled = f"71%: 12 of 17 labelled ends like this ({like}) were judged worth a restart"
    assert f"{labelled}; of your own restarts 3 of 4 passed" in why(one)
    (told_of,) = timeline_json(one, NOW)["attempts"]
    assert told_of["incident"].verdict.chance == alike
    assert "chance" not in why(told(*RESCUE)), "a record of an older midwatch has none"


@pytest.mark.capability("S000-11")
def test_why_of_a_failure_that_was_not_restarted_tells_the_newest_checkpoint_its_age_and_what_is_lost() -> (
    None
):
    saved = CheckpointChoice(100, "/ckpt/step_100", "step", NOW - 120_000)
    end = replace(fact("slurm:41:0", "FAILED", ended=True), saved=saved)
    failed = replace(FIRST, scheduler=end, ended_ms=NOW)
    text = why(told(failed, replace(STOP, attempt=1, incident="i1")))
    row = "checkpoint  of step 100, written 2 min before the end, 20 steps lost (/ckpt/step_100)"
    assert row in re.sub(" {2,}", "  ", text)
    epoch = replace(saved, unit="epoch", written_ms=0)
    text = why(told(replace(failed, scheduler=replace(end, saved=epoch))))
    assert "checkpoint  of epoch 100 (/ckpt/step_100)" in re.sub(" {2,}", "  ", text)
    later = replace(saved, written_ms=NOW + 60_000)
    text = why(told(replace(failed, scheduler=replace(end, saved=later))))
    assert "of step 100, written after the end" in text
    healthy = Verdict("healthy", "success")
    assert "of step 100" not in why(told(replace(failed, verdict=healthy)))


@pytest.mark.capability("S001-76")
def test_why_says_that_an_attempt_failed_as_those_before_it() -> None:
    second = replace(FIRST, id="i2", attempt=2, incarnation="slurm:57:0", opened_ms=NOW + 9)
    third = replace(second, id="i3", attempt=3, incarnation="slurm:58:0")
    text = why(told(FIRST, second, third))
    shown = re.sub(" {2,}", "  ", text)
    assert "again  as attempts 1 and 2: nccl_timeout, by the rule nccl_timeout" in shown
    assert "again  as attempt 1: nccl_timeout, by the rule nccl_timeout" in shown
    assert shown.count("again  as") == 2
    other = replace(second, verdict=OOM)
    assert "again  as" not in re.sub(" {2,}", "  ", why(told(FIRST, other)))
    unknown = Verdict("unknown")
    both = (replace(FIRST, verdict=unknown), replace(second, verdict=unknown))
    assert "again  as" not in re.sub(" {2,}", "  ", why(told(*both))), "nothing says that they are the same"


@pytest.mark.capability("S001-76")
def test_why_tells_of_a_job_that_keeps_failing_alike_what_it_is_taken_for_and_how_often_it_may() -> None:
    again = replace(FIRST, id="i2", attempt=2, incarnation="slurm:57:0", opened_ms=NOW + 9)
    second = replace(RESTART, attempt=2, incident="i2", restart_number=2)
    attempts = why(told(*RESCUE, again, second)).partition("\nall steps")[0]
    assert attempts.count("crash by nccl_timeout (comms), transient") == 2
    assert "restart attempt 1 of 3, policy verdict: transient" in attempts
    assert "restart attempt 2 of 3, policy verdict: transient" in attempts


@pytest.mark.capability("S001-77")
def test_why_tells_near_misses() -> None:
    assert "near miss  stall: matched, but excluded" in why(told(*RESCUE))


@pytest.mark.capability("S001-76", "S001-77")
def test_why_of_a_job_that_failed_alike_till_its_budget_was_spent_tells_what_spoke_for_a_restart() -> None:
    scene = Scene(policy="megatron_transient")
    scene.spec()
    for attempt in range(1, 5):
        scene.incarnation = f"local:{attempt}:1"
        scene.sequences.clear()
        scene.train(range(1, 11))
        scene.line("nccl_timeout", role="consequence", transient=True)
        scene.ended()
        scene.last_words()
        for command in scene.commands[attempt - 1 :]:
            scene.accepted(command)
            scene.done(command, f"local:{attempt + 1}:1")
    records = [*scene.records, *scene.decisions]
    text = why(timeline(SCENE_JOB, [Timed(NOW + n, record) for n, record in enumerate(records)]))
    attempts = text.partition("\nall steps")[0]
    assert attempts.count("crash by nccl_timeout (comms), transient") == 4
    assert [n for n in (1, 2, 3) if f"restart attempt {n} of 3" not in attempts] == []
    latest = attempts[attempts.index("\nattempt 4") : attempts.index("\nattempt 3")]
    assert "stop, policy megatron_transient: the budget is spent: 3 of 3 restarts after a crash" in latest
    assert "near miss  the error type nccl_timeout is to be restarted" in latest


@pytest.mark.capability("X-14")
def test_why_says_blind_and_jobs_does_not_say_running() -> None:
    hold = Decision(JOB, 1, "", 0, "hold", "verdict", "blind: no quorum of beats", NOW, True)
    one = told(BLIND, hold, beats=(NOW,))
    assert re.search("blind +no beat of a node that printed progress: midwatch concludes nothing", why(one))
    assert "hold, policy verdict: blind: no quorum of beats" in why(one)
    assert one.state_at(NOW) == "blind"
    seeing = told(BLIND, hold, replace(BLIND, open=False, at_ms=NOW + 1), beats=(NOW,))
    assert seeing.state_at(NOW) == "running"
    assert seeing.blind is None


@pytest.mark.capability("X-14")
def test_a_job_whose_beats_stopped_is_not_running() -> None:
    one = told(beats=(NOW,))
    assert one.state_at(NOW + 14_000) == "running"
    assert one.state_at(NOW + 16_000) == "unheard"


@pytest.mark.parametrize(
    ("records", "state", "stands"),
    [
        ((FIRST,), "failed", True),
        ((replace(FIRST, state="suspected"),), "failing", True),
        ((FIRST, replace(FIRST, state="withdrawn", revision=2)), "known", False),
        (RESCUE, "restarted", False),
        ((*RESCUE, SECOND), "failed", True),
        ((replace(FIRST, verdict=Verdict("healthy", "success")),), "ended", False),
        ((SchedulerFact(JOB, "x", "41", "", "running", False),), "running", False),
        ((SchedulerFact(JOB, "x", "41", "", "PENDING", False),), "queued", False),
        ((SchedulerFact(JOB, "x", "41", "running", "completed", True),), "ended", False),
    ],
)
def test_the_state_of_a_job(records: tuple[object, ...], state: str, stands: bool) -> None:
    one = told(*records)
    assert one.state_at(NOW) == state
    assert (one.standing is not None) is stands


def test_a_record_that_comes_twice_is_told_once() -> None:
    one = told(*RESCUE, *RESCUE)
    assert len(one.attempts[0].decisions) == len(one.attempts[0].commands) == 1
    assert [outcome for _, outcome in one.attempts[0].outcomes] == [DONE]
    assert len([step for step in one.steps if isinstance(step.record, Outcome)]) == 1


def test_a_later_revision_that_is_decided_alike_is_told_once() -> None:
    again = replace(STOP, revision=2, at_ms=NOW + 5)
    attempt = why(told(SECOND, STOP, replace(SECOND, revision=2), again)).partition("\nall steps")[0]
    assert attempt.count("stop, policy verdict") == 1


@pytest.mark.capability("S002-02")
def test_progress_and_modes_are_told() -> None:
    progress = Progress(
        "/logs/r0", Generation(1, 2, "f").key(), "p", "training", (5, 6), (1, 2), (1, 2), (0.0, 0.0)
    )
    spec = SpecEvent(JOB, "ab" * 32, "verdict", True, 1, "/c")
    one = told(Hits(ORIGIN, "b", progress=(progress,)), spec)
    assert one.last_step == 6
    assert re.search("policy +verdict, armed", why(one))
    disarmed = told(spec, PersonAct(JOB, "disarm", "ann", 1.0))
    assert "observed: midwatch says what it would do and does nothing" in why(disarmed)
    assert "no spec, so midwatch cannot start this job again" in why(told(FIRST))


def test_a_line_that_counts_no_step_leaves_the_last_step_as_it_was() -> None:
    place = ("/logs/r0", Generation(1, 2, "f").key())
    steps = Progress(*place, "p", "training", (5, 6), (1, 2), (1, 2), (0.0, 0.0))
    epoch = Progress(*place, "epoch", "training", (-1,), (3,), (3,), (0.0,), (), ("4",))
    assert told(Hits(ORIGIN, "b", progress=(steps,)), Hits(ORIGIN, "b", progress=(epoch,))).last_step == 6


def test_a_job_is_found_by_name_run_or_id() -> None:
    other = "night:you/gpt"
    known = timelines(
        [
            *(Timed(NOW, record) for record in RESCUE),
            Timed(NOW, replace(FIRST, job=other, incarnation="slurm:77:0")),
        ]
    )
    assert find_jobs(JOB, known) == (JOB,)
    assert set(find_jobs("gpt", known)) == {JOB, other}
    assert find_jobs("57", known) == (JOB,), "the id of a later attempt"
    assert find_jobs("77", known) == (other,)
    assert find_jobs("nothing", known) == ()


def test_why_says_of_each_other_candidate_why_it_is_not_the_root() -> None:
    later = Rival(
        "nccl_timeout", "/logs/rank_4.log", 9, "it stands after /logs/rank_3.log:812", "n4", 4, more=7
    )
    text = why(told(replace(FIRST, rivals=(later,)), RESTART))
    shown = "/logs/rank_4.log:9 n4 rank 4 nccl_timeout: it stands after /logs/rank_3.log:812 (7 more like it)"
    assert shown in re.sub(r"\s+", " ", text)
    assert "not root" in text
    many = tuple(replace(later, number=n) for n in range(15))
    assert "and 9 more candidates; --json lists all" in why(told(replace(FIRST, rivals=many), RESTART))


@pytest.mark.capability("S001-82")
def test_json_holds_all_records_with_their_captures() -> None:
    hit = replace(HIT, captures={"timeout_ms": "600000"})
    body = json.loads(msgspec.json.encode(timeline_json(told(replace(FIRST, evidence=(hit,)), RESTART), NOW)))
    assert body["job"] == JOB
    assert body["standing"] == "i1"
    attempt = body["attempts"][0]
    assert attempt["incident"]["verdict"]["root_line_number"] == 812
    assert attempt["incident"]["evidence"][0]["captures"] == {"timeout_ms": "600000"}
    assert attempt["decisions"][0]["near_misses"] == ["stall: matched, but excluded"]
    assert body["steps"][0]["line"].endswith("revision 1")


def test_tables_are_aligned_and_not_padded_at_the_end() -> None:
    rows = [row.plain for row in job_rows([(told(FIRST), ARMED), (told(beats=(NOW,)), OBSERVED)], NOW)]
    assert len({row.index(word) for row, word in zip(rows, ("STATE", "failed", "running"), strict=True)}) == 1
    assert all(row.plain == row.plain.rstrip() for row in columns([("a", "bb"), ("ccc", "d")]))


SPEC = Spec(JOB, "slurm", ("sbatch", "t.sh"), "/", {}, "me", (), "", policy="verdict", armed=True)
EVENT = SpecEvent(JOB, "s", "verdict", armed=True, nodes=1, checkpoint_directory="", incarnation="slurm:41:0")
DISARM = PersonAct(JOB, "disarm", "ann", 1.0)
ARM = PersonAct(JOB, "arm", "ann", 1.0)


def test_a_name_that_only_a_person_spoke_of_is_no_job() -> None:
    assert find_jobs(JOB, {JOB: told(DISARM)}) == ()
    assert find_jobs("gpt", {JOB: told(DISARM, Forwarded(DISARM))}) == ()
    assert find_jobs("gpt", {JOB: told(DISARM, SPEC)}) == (JOB,)


def test_a_job_is_found_by_the_id_under_which_its_shipper_speaks() -> None:
    assert find_jobs("41", {JOB: told(beats=(NOW,))}) == (JOB,)
    assert find_jobs("41", {JOB: told(EVENT)}) == (JOB,)


@pytest.mark.parametrize(
    ("records", "armed"),
    [
        ((SPEC,), True),
        ((replace(SPEC, armed=False),), False),
        ((EVENT, DISARM), False),
        ((EVENT, DISARM, EVENT), False),
        ((replace(EVENT, armed=False), ARM), True),
        ((ARM, replace(EVENT, armed=False)), False),
        ((DISARM, ARM, EVENT), True),
    ],
)
def test_who_is_armed_is_said_as_decide_and_executor_see_it(records: tuple[object, ...], armed: bool) -> None:
    assert told(*records).armed is armed


@pytest.mark.parametrize(
    ("records", "beats", "lives"),
    [
        ((EVENT,), (), True),
        ((EVENT, SchedulerFact(JOB, "slurm:41:0", "41", "R", "FAILED", ended=True)), (), False),
        ((), (NOW,), True),
        ((), (NOW - 60_000,), False),
        ((replace(EVENT, incarnation="slurm:58:0"),), (), False),
    ],
)
def test_another_start_of_a_job_lives_until_it_is_said_to_have_ended(
    records: tuple[object, ...], beats: tuple[int, ...], lives: bool
) -> None:
    assert told(*records, beats=beats).lives_at(NOW + 2, besides="slurm:58:0") is lives


def fact(incarnation: str, new: str, *, ended: bool, by_person: str = "") -> SchedulerFact:
    return SchedulerFact(
        JOB, incarnation, incarnation.split(":")[1], "RUNNING", new, ended, by_person=by_person
    )


def row(one: Timeline, now_ms: int = NOW) -> list[str]:
    """The job's line of `jobs`, by its columns."""
    head, line = (each.plain for each in job_rows([(one, ARMED)], now_ms))
    names = ("JOB", "STATE", "ACTING", "ATTEMPT", "STEP", "LAST HEARTBEAT", "WHY")
    places = [*(head.index(name) for name in names), None]
    return [line[a:b].strip() for a, b in pairwise(places)]


REQUEUED = replace(FIRST, verdict=OOM, superseded_by="slurm:41:1")
SECOND_BEAT = Timed(NOW, Heartbeat(replace(ORIGIN, incarnation="slurm:41:1"), 1, 0.0, 0.0, 5.0, True, 0))


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        ([fact("slurm:41:0", "REQUEUED", ended=True)], "queued"),
        ([fact("slurm:41:1", "PENDING", ended=False)], "queued"),
        ([fact("slurm:41:1", "RUNNING", ended=False)], "running"),
        ([SECOND_BEAT.record], "running"),
        ([fact("slurm:41:1", "RUNNING", ended=False), fact("slurm:41:1", "COMPLETED", ended=True)], "ended"),
    ],
)
def test_a_job_that_slurm_requeued_is_at_its_second_attempt_and_not_failed(
    seen: list[object], state: str
) -> None:
    one = told(beat(NOW).record, REQUEUED, *seen)
    assert row(one)[1:2] + row(one)[3:4] == [state, "2"]
    assert one.standing is None
    assert f"{JOB}  {state}  attempt 2" in why(one)


def test_a_second_attempt_that_fails_too_is_failed() -> None:
    again = replace(REQUEUED, id="i2", attempt=2, incarnation="slurm:41:1", superseded_by="")
    one = told(REQUEUED, SECOND_BEAT.record, again)
    assert (one.state_at(NOW), one.latest and one.latest.number) == ("failed", 2)


@pytest.mark.parametrize(
    "record", [beat(NOW).record, EVENT, fact("slurm:41:0", "RUNNING", ended=False), Hits(ORIGIN, "b")]
)
def test_a_first_attempt_has_its_number(record: object) -> None:
    assert row(told(record))[3] == "1"


def test_an_attempt_has_the_number_that_detect_gave_it() -> None:
    snapshot = Snapshot(JOB, 3, {"slurm:39:0": 1, "slurm:40:0": 2, "slurm:41:0": 3}, None, None)
    assert row(told(beat(NOW).record, snapshot))[3] == "3"
    assert row(told(replace(FIRST, attempt=4), beat(NOW).record))[3] == "4"
    foreign = Hits(replace(ORIGIN, incarnation=""), "b")
    assert row(told(foreign, foreign, beat(NOW).record))[3] == "1", "its incarnation is known later"


def test_a_name_without_any_start_has_no_attempt() -> None:
    assert row(told(SPEC))[3] == "-"


ENDED = replace(FIRST, state="ended", revision=0, verdict=Verdict("unknown", "ended"), evidence=())


def test_a_healthy_end_is_not_failed_until_the_scheduler_s_next_sweep() -> None:
    one = told(beat(NOW).record, ENDED)
    assert (one.state_at(NOW), one.standing) == ("ended", None)
    unsaid = told(beat(NOW).record, ENDED, replace(ENDED, state="settled", revision=1))
    assert unsaid.state_at(NOW) == "ended", "nobody has said how"
    assert unsaid.standing is not None, "and so a person is asked"


def test_an_end_with_a_cause_is_failed_once_it_has_settled() -> None:
    assert told(replace(FIRST, state="ended")).state_at(NOW) == "failing"
    assert told(FIRST).state_at(NOW) == "failed"


@pytest.mark.capability("S001-64")
@pytest.mark.parametrize("state", ["ended", "settled"])
def test_a_job_that_a_person_cancelled_is_cancelled(state: str) -> None:
    end = fact("slurm:41:0", "CANCELLED", ended=True, by_person="ann")
    verdict = Verdict("failed", "ended", "cancelled", "stopped", "slurm")
    one = told(beat(NOW).record, end, replace(ENDED, state=state, verdict=verdict, scheduler=end))  # type: ignore[arg-type]  # a state of an incident
    assert (one.state_at(NOW), one.standing) == ("cancelled", None)
    assert row(one)[6] == "cancelled by ann"
    assert told(fact("slurm:41:0", "CANCELLED", ended=True, by_person="ann")).state_at(NOW) == "cancelled"


SUSPECTED = replace(FIRST, state="suspected", revision=0, verdict=Verdict("unknown"))


def test_a_suspected_incident_is_told_by_its_line() -> None:
    one = told(beat(NOW).record, SUSPECTED)
    assert "no line says why" not in why(one)
    assert re.search(
        r"verdict +nothing has ended, but a line says nccl_timeout, suspected \(revision 0\)", why(one)
    )
    assert row(one)[6] == "nothing has ended, but a line says nccl_timeout"
    (_, listed) = (each.plain for each in incident_rows([(SUSPECTED, True, one.attempts[0])]))
    assert "nothing has ended, but a line says nccl_timeout" in listed


def test_a_withdrawn_incident_is_told_by_what_withdrew_it() -> None:
    verdict = Verdict("unknown", remedy="the job went on: step 12")
    text = why(told(beat(NOW).record, SUSPECTED, replace(SUSPECTED, state="withdrawn", verdict=verdict)))
    assert "no line says why" not in text
    assert re.search("verdict +none: the job went on: step 12, withdrawn", text)
    assert "remedy" not in text


def test_a_job_that_ended_long_ago_keeps_its_last_step_and_heartbeat() -> None:
    ended = replace(FIRST, heard_ms=NOW - 5000)
    assert row(told(ended))[4:6] == ["120", moment(NOW - 5000)]
    assert told(ended).state_at(NOW) == "failed"
    seen = told(beat(NOW - 9000).record, replace(BLIND, step=77, heard_ms=NOW - 4000))
    assert row(seen)[4] == "77"
    assert row(told(replace(BLIND, step=77, heard_ms=NOW - 4000)))[4:6] == ["77", moment(NOW - 4000)]


def test_a_job_that_has_made_no_step_lately_keeps_its_last_one() -> None:
    snapshot = Snapshot(JOB, 2, {"slurm:40:0": 1, "slurm:41:0": 2}, None, None, step=900)
    assert row(told(beat(NOW).record, snapshot))[3:5] == ["2", "900"]


def test_what_was_seen_of_an_earlier_attempt_is_no_sign_of_the_latest() -> None:
    one = told(replace(REQUEUED, heard_ms=NOW))
    assert (one.state_at(NOW), one.last_heartbeat_ms) == ("known", NOW)


def test_a_heartbeat_of_the_second_attempt_may_be_the_first_record_in_view() -> None:
    assert row(told(SECOND_BEAT.record, replace(FIRST, superseded_by="")))[1:4:2] == ["running", "2"]
