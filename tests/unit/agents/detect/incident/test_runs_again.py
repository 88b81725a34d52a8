"""What HTCondor or TensorFlow began again by itself did not end."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch


def event(kind: str, process: int, minute: int, words: str) -> str:
    return f"{kind} (77.{process:03}.000) 03/02 11:{minute:02}:00 {words}\n...\n"


def executes(process: int, minute: int) -> str:
    return event("001", process, minute, f"Job executing on host: <10.8.0.{process + 4}:9618?sock=toy>")


ENDS_WELL = "Job terminated.\n\t(1) Normal termination (return value 0)"
BEGINS = executes(0, 1) + executes(1, 2) + executes(2, 3)
LOST = [
    pytest.param("004", "Job was evicted.\n\t(0) Job was not checkpointed.", id="evicted"),
    pytest.param("007", "Shadow exception!\n\tError from toy: the toy is gone", id="its shadow failed"),
    pytest.param("022", "Job disconnected, attempting to reconnect", id="disconnected"),
    pytest.param("024", "Job reconnection failed", id="its machine is lost"),
    pytest.param("012", "Job was held.\n\tError from toy: no such toy", id="held"),
]


@pytest.mark.parametrize(("kind", "words"), LOST)
def test_a_process_that_runs_again_did_not_end(watch: Watch, kind: str, words: str) -> None:
    done = watch(
        BEGINS
        + event(kind, 1, 10, words)
        + event("005", 0, 11, ENDS_WELL)
        + executes(1, 12)
        + event("005", 2, 20, ENDS_WELL)
        + event("005", 1, 21, ENDS_WELL)
    )
    assert (done.verdict.state != "failed", done.decision.action) == (True, "none")


@pytest.mark.parametrize(("kind", "words"), LOST)
def test_another_process_that_runs_shows_nothing_of_it(watch: Watch, kind: str, words: str) -> None:
    done = watch(BEGINS + event(kind, 1, 10, words) + executes(3, 12) + event("005", 2, 20, ENDS_WELL))
    assert done.verdict.state == "failed"
    assert done.verdict.root_line.startswith(f"{kind} (77.001.000)")


def test_a_process_that_is_evicted_once_more_has_ended(watch: Watch) -> None:
    evicted = "Job was evicted.\n\t(0) Job was not checkpointed."
    done = watch(BEGINS + event("004", 1, 10, evicted) + executes(1, 12) + event("004", 1, 30, evicted))
    assert done.verdict.root_line.startswith("004 (77.001.000) 03/02 11:30")


def test_a_process_whose_machine_came_back_did_not_end(watch: Watch) -> None:
    done = watch(
        BEGINS
        + event("022", 1, 10, "Job disconnected, attempting to reconnect")
        + event("023", 1, 11, "Job reconnected to slot7@toy.example.org")
        + event("005", 0, 21, ENDS_WELL)
    )
    assert done.decision.action == "none"


GROWS = event("006", 0, 9, "Image size of job updated: 4188") * 6000


@pytest.mark.parametrize(("kind", "words"), LOST)
def test_the_event_may_be_read_much_later(watch: Watch, kind: str, words: str) -> None:
    """In another chunk than the loss."""
    done = watch(
        BEGINS + event(kind, 1, 10, words) + GROWS + executes(1, 40) + event("005", 1, 50, ENDS_WELL)
    )
    assert (done.verdict.state != "failed", done.decision.action) == (True, "none")


CLOSED = (
    "Traceback (most recent call last):\n"
    '  File "/toy/monitored_session.py", line 77, in run\n'
    "    return self._sess.run(toys)\n"
    "FailedPreconditionError (see above for traceback): Unable to enqueue toys, queue: [77]. It is closed\n"
)
NEW_SESSION = (
    "INFO:tensorflow:An error was raised. This may be due to a preemption in a connected worker or parameter "
    "server. The current session will be closed and a new session will be created.\n"
)
RESTORED = (
    "INFO:tensorflow:Graph was finalized.\nINFO:tensorflow:Restoring parameters from /toy/model.ckpt-0\n"
)


def test_an_error_behind_which_tensorflow_makes_a_new_session_did_not_end_the_job(watch: Watch) -> None:
    done = watch(CLOSED + NEW_SESSION + RESTORED)
    assert (done.verdict.state != "failed", done.decision.action) == (True, "none")
    assert watch(CLOSED + RESTORED).verdict.state == "failed"
    # Another worker's failure is no part of this process's session.
    assert watch(CLOSED + RESTORED, NEW_SESSION + RESTORED).verdict.state == "failed"
    again = watch(CLOSED + NEW_SESSION + RESTORED + CLOSED.replace("77]", "88]"))
    assert "[88]" in again.verdict.root_line
