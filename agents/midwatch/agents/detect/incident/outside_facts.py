"""Outside facts: reports of the scheduler, the executor and a person, and the job's spec."""

from __future__ import annotations

from dataclasses import replace

from midwatch.agents.detect.incident.attempts import meet, older_ended
from midwatch.agents.detect.incident.quorum import forget_silence
from midwatch.agents.detect.incident.resumption import was_told
from midwatch.agents.detect.incident.settling import end, settle_if_due
from midwatch.agents.detect.incident.turn import Turn
from midwatch.streams.records import CheckpointChoice, Forwarded, Outcome, PersonAct, SchedulerFact, SpecEvent

_FRESH_MS = 180_000  # the executor looks once a minute, and two clocks differ
_GPUS_HELD = "GPUS_HELD"  # Ray's driver says it of a running job


def on_scheduler(turn: Turn, fact: SchedulerFact) -> None:
    """Fold the scheduler's fact about one incarnation."""
    by = f"command:{fact.effect_key}" if fact.effect_key else ""
    if not meet(turn, fact.incarnation, by=by):
        if fact.ended:
            older_ended(turn, fact.incarnation)
        return
    if not fact.ended:
        if fact.saved is not None:
            _saved(turn, fact.saved)
        else:
            _waits_or_runs(turn, fact)
        return
    if turn.state.scheduler == fact:
        return
    turn.clear_finding("gpus_held", "the job has ended")
    turn.set(scheduler=fact)
    if fact.saved is not None:
        _saved(turn, fact.saved)
    if turn.state.commanded:
        # The command caused this end. Its outcome reports that, and the verdict stays.
        return
    end(turn)
    settle_if_due(turn)


def _saved(turn: Turn, saved: CheckpointChoice) -> None:
    """A complete checkpoint that the attempt wrote is progress. One that is told late ends no silence."""
    if not _is_new(turn, saved):
        return
    turn.set(trained=True, loops={})
    if turn.now_ms - saved.written_ms < _FRESH_MS:
        forget_silence(turn)


def _is_new(turn: Turn, saved: CheckpointChoice) -> bool:
    """Whether this attempt wrote the checkpoint: after its start, and not the one that it was told to load.

    Two clocks are compared, the file system's and the broker's. The path rules out the likeliest mistake.
    """
    return saved.written_ms > turn.state.started_ms and saved.path != turn.state.resumption.told_path


def _waits_or_runs(turn: Turn, fact: SchedulerFact) -> None:
    if fact.new == _GPUS_HELD:
        turn.open_finding("gpus_held", fact.reason)
    else:
        turn.clear_finding("gpus_held", f"the job is {fact.new.lower()}")
    if fact.waits:
        turn.set(queued=True)
        turn.clear_finding("blind", "the job waits in the scheduler's queue")
    elif turn.state.queued:
        turn.set(queued=False, awaited_ms=turn.now_ms)


def on_outcome(turn: Turn, outcome: Outcome) -> None:
    """Fold the outcome of a command, and forward it to decide in the order of `events`."""
    state = turn.state
    if outcome.attempt == state.attempt:
        if outcome.state == "accepted":
            turn.set(commanded=outcome.command)
        elif outcome.state in ("refused", "expired", "failed") and state.commanded == outcome.command:
            turn.set(commanded="")
    turn.emit(Forwarded(outcome))
    if outcome.state != "done" or not outcome.new_incarnation:
        return
    if meet(turn, outcome.new_incarnation, by=f"command:{outcome.command}"):
        _note_checkpoint(turn, outcome)


def _note_checkpoint(turn: Turn, outcome: Outcome) -> None:
    """Note the checkpoint of a new start. A start that chose for itself has said better what it loads."""
    number, unit = outcome.checkpoint_step, outcome.checkpoint_unit
    if outcome.checkpoint and number is not None:
        was_told(turn, CheckpointChoice(number, outcome.checkpoint, unit, outcome.checkpoint_written_ms))
    elif turn.state.resumption.told_step is None:
        turn.set(checkpoint_step=number)


def on_spec(turn: Turn, spec: SpecEvent) -> None:
    """Fold the spec, which says how to watch the job."""
    turn.set(spec=spec, nodes=max(spec.nodes, 1))
    turn.emit(Forwarded(spec))
    if spec.incarnation:
        meet(turn, spec.incarnation, by="person")


def on_act(turn: Turn, act: PersonAct) -> None:
    """Fold a person's act, such as arm or disarm."""
    spec = turn.state.spec
    if spec is not None and act.act in ("arm", "disarm"):
        turn.set(spec=replace(spec, armed=act.act == "arm"))
    if act.act == "arm":
        # The person who arms a job takes responsibility for its deleted history.
        turn.set(whole=True)
    turn.emit(Forwarded(act))
