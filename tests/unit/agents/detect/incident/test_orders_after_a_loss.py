"""Redis forgot what was ordered: the next order is made, the budget pays once, and the past still counts."""

from __future__ import annotations

from dataclasses import replace

from midwatch.agents.decide.decision import decide
from midwatch.agents.decide.state import DecideState
from midwatch.streams.records import Action, Command, Forwarded, Outcome
from unit.agents.detect.incident.scene import JOB, Scene


def _failed() -> Scene:
    scene = Scene()
    scene.spec()
    scene.train(range(1, 21))
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words()
    assert len(scene.commands) == 1
    return scene


def _answered(scene: Scene, command: Command, state: str, action: Action = "restart") -> None:
    scene.say(Outcome(JOB, command.id, command.attempt, action, state, "Redis lost it"))  # type: ignore[arg-type]  # a state of outcomes, given by name


def test_an_order_that_the_executor_finds_older_than_the_loss_is_followed_by_the_next() -> None:
    scene = _failed()
    _answered(scene, scene.commands[0], "expired")
    assert [(c.attempt, c.seq, c.restart_number) for c in scene.commands] == [(1, 1, 1), (1, 2, 1)]
    assert scene.watch.decided.restarts == {}


def test_an_order_lost_while_it_was_carried_out_is_ordered_again_and_paid_once() -> None:
    scene = _failed()
    scene.accepted(scene.commands[0])
    _answered(scene, scene.commands[0], "expired")
    assert [(c.seq, c.restart_number) for c in scene.commands] == [(1, 1), (2, 1)]
    scene.accepted(scene.commands[1])
    scene.done(scene.commands[1], "local:200:1")
    assert scene.watch.decided.restarts == {"crash": 1}
    assert scene.watch.decided.counted == (1,)


def test_orders_that_keep_getting_lost_end_with_a_person() -> None:
    scene = _failed()
    for _ in range(5):
        _answered(scene, scene.commands[-1], "expired")
    assert [c.seq for c in scene.commands] == [1, 2, 3]
    assert scene.decisions[-1].action == "hold"


def test_what_was_accepted_counts_even_if_the_past_would_be_decided_otherwise_now() -> None:
    """The watch only observes since: replaying `incidents` orders nothing, and yet it was spent."""
    scene = _failed()
    scene.accepted(scene.commands[0])
    told = list(scene.records)
    observing = replace(scene.book, acting=False)
    state = DecideState()
    for record in told:
        state = decide(state, record, 1, observing).state
    assert (state.issued, state.restarts, state.counted) == (None, {"crash": 1}, (1,))
    late = scene.settled()[-1]
    again = decide(state, replace(late, revision=late.revision + 1), 2, scene.book)
    assert again.commands == ()
    assert "already out" in again.decisions[-1].reason


def test_the_same_word_of_the_executor_twice_is_spent_once() -> None:
    scene = _failed()
    for _ in range(3):
        scene.accepted(scene.commands[0])
    forwarded = Forwarded(Outcome(JOB, "some-other-id", 1, "restart", "done", "ok"))
    assert decide(scene.watch.decided, forwarded, 1, scene.book).state.restarts == {"crash": 1}
