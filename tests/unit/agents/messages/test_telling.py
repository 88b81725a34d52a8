"""What a person hears of a job, and when."""

from __future__ import annotations

import pytest

from midwatch.agents.messages.routing import Route
from midwatch.streams.records import Decision, Forwarded, PersonAct
from unit.agents.messages.records import JOB, OOM, Partition, decision, done, finding, incident, spec


@pytest.fixture
def partition() -> Partition:
    return Partition()


def test_an_incident_is_one_message_with_what_why_done_and_the_command(partition: Partition) -> None:
    assert partition.take(incident(), 1) == []
    (notice,) = partition.take(decision(), 1)
    assert (notice.state, notice.severity, notice.job) == ("opened", "warning", JOB)
    assert notice.heading == f"[midwatch] WARNING: {JOB} failed: cuda_oom"
    assert notice.what == "attempt 1 ended by crash: cuda_oom (node n7, rank 3, step 4502)"
    assert notice.why == f"{OOM} (/logs/rank_3.log:12)"
    assert notice.done == "A restart (1 of 3) is commanded: it is transient"
    assert notice.look == f"midwatch why {JOB}"


def test_a_stall_is_told_in_the_words_of_its_first_description(partition: Partition) -> None:
    partition.take(incident(mode="stall", error_type="stall", root_line="", step=200), 1)
    (notice,) = partition.take(decision(), 1)
    assert "Training Stall" in notice.heading
    assert notice.what == "Training Stall: No progress for 10 min; attempt 1 (node n7, rank 3, step 200)"


def test_a_loss_spike_is_told_in_the_words_of_its_first_description(partition: Partition) -> None:
    quantities = {"step": "300", "loss": "5.2", "usual": "1.9"}
    assert partition.take(finding(quantities=quantities), 1) == [], "an incident may follow"
    assert partition.deadlines[-1] == 11_000
    (notice,) = partition.take(None, 11)
    assert notice.heading == f"[midwatch] WARNING: {JOB}: Loss Spike"
    assert notice.what == (
        "Loss Spike (>2x moving average): the loss is 5.2 at step 300, 2.7x its moving average of 1.9"
    )
    assert "/logs/rank_0.log:9" in notice.why
    assert notice.done == "Nothing: a finding alone ends no job."


def test_a_loss_that_is_no_number_is_told_too(partition: Partition) -> None:
    partition.take(finding(quantities={"step": "300", "loss": "nan", "usual": "1.9"}), 1)
    (notice,) = partition.take(None, 11)
    assert notice.what.endswith("the loss is nan at step 300, its moving average was 1.9")


@pytest.mark.capability("S000-21")
def test_a_start_says_that_the_watch_is_on(partition: Partition) -> None:
    (notice,) = partition.take(spec(training=600.0), 1)
    assert (notice.severity, notice.what) == ("info", "Monitoring: ACTIVE; armed, policy verdict")
    assert "Training Stall (No progress for 10 min), Loss Spike (>2x moving average)" in notice.why
    assert partition.take(spec(training=600.0), 2) == [], "the same start"


@pytest.mark.capability("X-43")
def test_findings_of_an_attempt_belong_to_its_incident(partition: Partition) -> None:
    partition.take(finding(), 1)
    partition.take(incident(), 5)
    (notice,) = partition.take(decision(), 5)
    assert "before that: Loss Spike, attempt 1" in notice.what
    assert partition.take(None, 20) == []
    assert partition.take(finding("node_silent", detail="n1 is silent"), 30) == []
    assert partition.take(None, 60) == []


@pytest.mark.capability("X-15")
def test_an_alarm_that_comes_back_is_told_after_the_cooldown_and_not_before(partition: Partition) -> None:
    partition.take(finding(), 0)
    assert len(partition.take(None, 10)) == 1
    (over,) = partition.take(finding(open=False, detail="the loss is back"), 20)
    assert (over.state, over.done) == ("resolved", "the loss is back.")
    assert partition.take(finding(), 30) == []
    assert partition.take(finding(open=False), 40) == []
    assert partition.take(finding(), 50) == []
    assert partition.deadlines[-1] == 3_610_000
    (again,) = partition.take(None, 3_610)
    assert (again.state, again.key) == ("again", over.key)
    assert again.heading.startswith("[midwatch] STILL WARNING")


def test_what_lasts_is_told_again_with_growing_pauses_and_then_no_more(partition: Partition) -> None:
    partition.take(incident(), 0)
    (first,) = partition.take(decision(action="hold", command=""), 0)
    assert (first.severity, first.done) == (
        "critical",
        "Nothing: the job is held for a person: it is transient",
    )
    for hour in (1, 3, 7):
        assert partition.deadlines[-1] == hour * 3_600_000
        (again,) = partition.take(None, hour * 3600)
        assert (again.state, again.key) == ("again", first.key)
    assert partition.deadlines[-1] is None


def test_a_worker_that_was_away_for_long_tells_a_reminder_once(partition: Partition) -> None:
    partition.take(incident(), 0)
    partition.take(decision(action="hold", command=""), 0)
    assert len(partition.take(None, 86_400)) == 1


def test_an_incident_is_resolved_once_when_the_job_was_started_again(partition: Partition) -> None:
    partition.take(incident(), 1)
    partition.take(decision(), 1)
    (over,) = partition.take(done(), 60)
    assert over.state == "resolved"
    assert over.done == "The job was started again as 18, told to load the checkpoint of step 4500."
    assert partition.take(finding("resumed", open=False, attempt=2, detail="resumed from 4500"), 90) == []


def test_a_hold_is_over_when_a_person_starts_the_job_again(partition: Partition) -> None:
    partition.take(incident(), 1)
    (held,) = partition.take(decision(action="hold", command=""), 1)
    over, on = partition.take(spec("another"), 60)
    assert (over.key, over.state, over.done) == (held.key, "resolved", "A person started it again.")
    assert on.what.startswith("Monitoring: ACTIVE")


def test_a_rescue_that_fails_is_told_at_once_although_the_incident_was(partition: Partition) -> None:
    partition.take(incident(), 1)
    (first,) = partition.take(decision(), 1)
    (failed,) = partition.take(decision(action="hold", command="", reason="the executor refused"), 2)
    assert (failed.group, failed.severity) == (first.group, "critical")
    assert failed.key != first.key
    over = partition.take(done(), 60)
    assert [each.key for each in over] == [failed.key]


def test_a_revision_whose_command_is_out_is_no_second_message(partition: Partition) -> None:
    partition.take(incident(), 1)
    partition.take(decision(), 1)
    partition.take(incident(), 2)
    assert partition.take(decision(action="none", command="", reason="a command is already out"), 2) == []
    (over,) = partition.take(done(), 60)
    assert over.state == "resolved"


def test_what_would_be_done_by_a_watch_that_only_observes_is_no_rescue(partition: Partition) -> None:
    partition.take(incident(), 1)
    (notice,) = partition.take(decision(command="", reason="it is transient; observing only"), 1)
    assert (notice.severity, notice.done) == (
        "critical",
        "Nothing: midwatch would restart it (1 of 3): it is transient; observing only",
    )


def test_a_short_finding_is_told_although_it_is_over(partition: Partition) -> None:
    partition.take(finding(), 1)
    assert partition.take(finding(open=False, detail="the loss is back"), 3) == []
    (notice,) = partition.take(None, 11)
    assert (notice.state, notice.done) == ("opened", "It is over already: the loss is back.")
    assert partition.take(finding(open=False), 20) == [], "nobody waits for its end"


def test_a_job_that_ends_well_is_no_alarm(partition: Partition) -> None:
    partition.take(incident(), 1)
    partition.take(decision(action="none", command="", reason="cancelled by ada"), 1)
    assert partition.take(spec(), 5)[-1].severity == "info"


def test_a_finding_s_own_decision_is_no_second_message(partition: Partition) -> None:
    partition.take(finding("two_alive", detail="two attempts are alive"), 1)
    held = decision(action="hold", command="", incident="", reason="two attempts are alive")
    assert partition.take(held, 1) == []


def test_a_record_that_cannot_be_read_is_told_and_over_once_the_job_is_armed(partition: Partition) -> None:
    held = decision(action="hold", command="", incident="", reason="a record of this job could not be read")
    (notice,) = partition.take(held, 1)
    assert (notice.severity, notice.title) == ("critical", f"{JOB} is held")
    (over,) = partition.take(Forwarded(PersonAct(JOB, "arm", "ada", 1.0)), 9)
    assert (over.state, over.key) == ("resolved", notice.key)


def test_a_decision_without_its_incident_is_told_all_the_same(partition: Partition) -> None:
    alone: Decision = decision()
    (notice,) = partition.take(alone, 1)
    assert notice.look == f"midwatch why {JOB}"


def test_notices_go_by_severity() -> None:
    partition = Partition((Route("webhook"), Route("slack", "warning"), Route("email", "critical")))
    partition.take(spec(), 0)
    assert partition.channels == ["channel/webhook"]
    partition.take(incident(), 1)
    partition.take(decision(), 1)
    assert partition.channels == ["channel/webhook", "channel/slack"]
    partition.take(decision(action="hold", command=""), 2)
    assert partition.channels == ["channel/webhook", "channel/slack", "channel/email"]


def test_a_name_that_a_shell_would_read_is_quoted() -> None:
    from midwatch.agents.messages.wording import look

    assert look("local:ada/a b") == "midwatch why 'local:ada/a b'"
