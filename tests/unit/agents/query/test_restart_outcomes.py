"""How the user's own restarts ended, as `midwatch outcomes` counts them."""

from __future__ import annotations

from dataclasses import replace

from midwatch.agents.query.restart_outcomes import counted_restarts
from midwatch.streams.records import Chance, Incident, SchedulerFact
from unit.agents.query.test_timeline import DONE, FIRST, JOB, OOM, RESCUE, SECOND, TIMEOUT, told

CLASS = "nccl_timeout/transient/stepped"


def again(**fields: object) -> Incident:
    """The same end of the second attempt."""
    return replace(SECOND, verdict=replace(TIMEOUT, **fields))  # type: ignore[arg-type]  # fields that exist


def test_a_restart_that_got_beyond_the_failure_passed_and_one_that_did_not_is_counted_too() -> None:
    beyond, same = told(*RESCUE, again(step=500)), told(*RESCUE, again())
    assert counted_restarts([beyond]) == {CLASS: (1, 1)}
    assert counted_restarts([beyond, same, beyond]) == {CLASS: (2, 3)}


def test_what_has_not_ended_was_not_restarted_or_was_cancelled_counts_for_nothing() -> None:
    person = SchedulerFact(JOB, "slurm:57:0", "57", "RUNNING", "CANCELLED", ended=True, by_person="ada")
    for records in (
        RESCUE,
        (FIRST, SECOND),
        (*RESCUE, replace(again(), state="ended")),
        (*RESCUE, replace(again(), scheduler=person)),
        (FIRST, replace(DONE, state="refused"), again()),
    ):
        assert counted_restarts([told(*records)]) == {}


def test_the_class_is_that_of_the_end_before_and_an_older_verdict_tells_steps_by_their_number() -> None:
    unstepped = replace(TIMEOUT, chance=Chance(0.5, stepped=False))
    assert counted_restarts([told(replace(FIRST, verdict=unstepped), *RESCUE[1:], again())]) == {
        "nccl_timeout/transient/unstepped": (0, 1)
    }
    early = replace(FIRST, verdict=replace(OOM, step=None))
    assert counted_restarts([told(early, *RESCUE[1:], SECOND)]) == {"oom/permanent/unstepped": (0, 1)}
