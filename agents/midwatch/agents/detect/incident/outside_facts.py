"""What others say of the job: the scheduler, the executor, a person, the job's own spec."""

from __future__ import annotations

from dataclasses import replace

from midwatch.agents.detect.incident.attempts import meet, older_ended
from midwatch.agents.detect.incident.settling import end, settle_if_due
from midwatch.agents.detect.incident.turn import Turn
from midwatch.streams.records import Forwarded, Outcome, PersonAct, SchedulerFact, SpecEvent


def on_scheduler(turn: Turn, fact: SchedulerFact) -> None:
    """The scheduler's word on one incarnation."""
    by = f"command:{fact.effect_key}" if fact.effect_key else ""
    if not meet(turn, fact.incarnation, by=by):
        if fact.ended:
            older_ended(turn, fact.incarnation)
        return
    if not fact.ended:
        _waits_or_runs(turn, fact)
        return
    if turn.state.scheduler == fact:
        return
    turn.set(scheduler=fact)
    if turn.state.commanded:
        # The end is the effect of our own command: its outcome tells of it, the verdict stands.
        return
    end(turn)
    settle_if_due(turn)


def _waits_or_runs(turn: Turn, fact: SchedulerFact) -> None:
    if fact.waits:
        turn.set(queued=True)
        turn.clear_finding("blind", "the job waits in the scheduler's queue")
    elif turn.state.queued:
        turn.set(queued=False, awaited_ms=turn.now_ms)


def on_outcome(turn: Turn, outcome: Outcome) -> None:
    """What became of a command; decide hears of it in the order of truth."""
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
        turn.set(checkpoint_step=outcome.checkpoint_step)


def on_spec(turn: Turn, spec: SpecEvent) -> None:
    """How the job is to be watched."""
    turn.set(spec=spec, nodes=max(spec.nodes, 1))
    turn.emit(Forwarded(spec))
    if spec.incarnation:
        meet(turn, spec.incarnation, by="person")


def on_act(turn: Turn, act: PersonAct) -> None:
    """A person's hand on the wheel."""
    spec = turn.state.spec
    if spec is not None and act.act in ("arm", "disarm"):
        turn.set(spec=replace(spec, armed=act.act == "arm"))
    if act.act == "arm":
        # Who arms a job answers for what the log no longer tells of it.
        turn.set(whole=True)
    turn.emit(Forwarded(act))
