"""What an order must show. Each test changes one thing about an order that would be carried out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.executor.admission import AdmissionLimits, Arrival, Known, admit
from midwatch.agents.executor.arming import Arming
from midwatch.streams.records import Command, Spec
from midwatch.streams.records.effect_keys import command_id

NOW = 1_000_000
JOB = "local:ann/r"
SPEC = Spec(
    job=JOB,
    cluster="local",
    argv=("python", "train.py"),
    cwd="/home/ann",
    environment={},
    user="ann",
    log_paths=(),
    checkpoint_directory="",
    policy="verdict",
    armed=True,
)
COMMAND = Command(
    id=command_id(JOB, 2, 1),
    job=JOB,
    attempt=2,
    seq=1,
    action="restart",
    incarnation="local:20:5",
    incident="i",
    revision=1,
    reason="transient",
    not_before_ms=NOW - 1000,
    expires_ms=NOW + 60_000,
    issuer="decide",
    spec="s",
    bundle="",
)
KNOWN = Known(
    now_ms=NOW,
    sent_ms=NOW - 900,
    signed=True,
    spec=SPEC,
    spec_signed=True,
    incarnations=("local:10:5", "local:20:5"),
    arming=Arming(True, "armed by ann"),
)
LIMITS = AdmissionLimits(clusters=frozenset({"local"}), users=frozenset({"ann"}), rate=3, storm_jobs=4)


def test_an_order_that_shows_all_it_must_is_accepted() -> None:
    admission = admit(COMMAND, KNOWN, LIMITS)
    assert (admission.state, admission.reason) == ("accepted", "armed by ann")


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"signed": False}, "not signed"),
        ({"spec": None}, "no spec of the job has the hash"),
        ({"spec_signed": False}, "the spec is not signed"),
        ({"spec": replace(SPEC, job="local:ann/other")}, "the spec is that of local:ann/other"),
        ({"spec": replace(SPEC, cluster="slurm")}, "no cluster slurm"),
        ({"spec": replace(SPEC, user="eve")}, "eve is not on this executor's list"),
        ({"incarnations": ()}, "never ran as local:20:5"),
        ({"incarnations": ("local:20:5", "local:30:5")}, "the job now runs as local:30:5"),
        ({"arming": Arming(False, "disarmed by bob")}, "disarmed by bob"),
        ({"unsafe": "Redis has appendfsync everysec"}, "appendfsync everysec"),
    ],
)
def test_what_is_known_can_refuse_it(changed: dict[str, object], word: str) -> None:
    admission = admit(COMMAND, replace(KNOWN, **changed), LIMITS)  # type: ignore[arg-type]  # any field
    assert admission.state == "refused"
    assert word in admission.reason


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"id": "x"}, "its id"),
        ({"attempt": 3}, "its id"),
        ({"parameters": {"argv": "rm -rf /"}}, "argv is not allowed"),
        ({"parameters": {"exclude": "n0; rm"}}, "exclude is not allowed"),
        ({"parameters": {"checkpoint_step": "20"}}, "checkpoint_step is not allowed"),
    ],
)
def test_what_it_says_of_itself_can_refuse_it(changed: dict[str, object], word: str) -> None:
    admission = admit(replace(COMMAND, **changed), KNOWN, LIMITS)  # type: ignore[arg-type]  # any field
    assert admission.state == "refused"
    assert word in admission.reason


@pytest.mark.parametrize(
    ("named", "word"), [(("prod",), ""), (("prod", "debug"), "partition debug"), ((), "names no partition")]
)
def test_a_submission_to_a_partition_off_the_list_is_refused(named: tuple[str, ...], word: str) -> None:
    limits = replace(LIMITS, clusters=frozenset({"slurm"}), partitions=frozenset({"prod"}))
    known = replace(KNOWN, spec=replace(SPEC, cluster="slurm"), partitions=named)
    admission = admit(COMMAND, known, limits)
    assert admission.state == ("refused" if word else "accepted")
    assert word in admission.reason


def test_typed_parameters_pass() -> None:
    order = replace(COMMAND, parameters={"exclude": "gpu[01-04],n7", "checkpoint_step": 20})
    assert admit(order, KNOWN, LIMITS).state == "accepted"


def test_a_late_order_is_expired_and_not_refused_so_that_it_may_be_issued_again() -> None:
    admission = admit(replace(COMMAND, expires_ms=NOW), KNOWN, LIMITS)
    assert admission.state == "expired"


def test_an_order_older_than_a_loss_of_redis_is_expired_so_that_the_next_may_be_issued() -> None:
    admission = admit(COMMAND, replace(KNOWN, lost_ms=NOW - 500), LIMITS)
    assert admission.state == "expired"
    assert "older than the loss of Redis" in admission.reason


def test_an_unsigned_order_is_not_even_asked_for_its_time() -> None:
    late = replace(COMMAND, expires_ms=1)
    assert admit(late, replace(KNOWN, signed=False), LIMITS).state == "refused"


def test_an_order_written_after_the_loss_is_accepted() -> None:
    assert admit(COMMAND, replace(KNOWN, lost_ms=NOW - 5000), LIMITS).state == "accepted"


def test_the_rate_counts_accepted_orders_of_all_jobs_in_the_window() -> None:
    accepted = [Arrival(JOB, NOW - 1_000_000 + n, True) for n in range(3)]
    assert "3 commands were accepted" in admit(COMMAND, replace(KNOWN, recent=accepted), LIMITS).reason
    refused = [replace(a, accepted=False) for a in accepted]
    assert admit(COMMAND, replace(KNOWN, recent=refused), LIMITS).state == "accepted"
    long_ago = [replace(a, at_ms=NOW - LIMITS.rate_window_ms) for a in accepted]
    assert admit(COMMAND, replace(KNOWN, recent=long_ago), LIMITS).state == "accepted"


def test_many_jobs_that_fail_together_are_held_and_one_that_fails_often_is_not() -> None:
    storm = [Arrival(f"local:ann/{n}", NOW - 1000, False) for n in range(4)]
    admission = admit(COMMAND, replace(KNOWN, recent=storm), LIMITS)
    assert "5 jobs have commands within 120 s" in admission.reason
    one = [Arrival(JOB, NOW - 1000 - n, False) for n in range(40)]
    assert admit(COMMAND, replace(KNOWN, recent=one), LIMITS).state == "accepted"
    calm = [replace(a, at_ms=NOW - LIMITS.storm_window_ms) for a in storm]
    assert admit(COMMAND, replace(KNOWN, recent=calm), LIMITS).state == "accepted"
