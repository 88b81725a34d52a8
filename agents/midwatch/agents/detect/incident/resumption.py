"""Where a new start really went on: its first step, against the checkpoint that it was told to load.

The executor knows only what it told the start. The first step that the job prints shows what it loaded. The
two may arrive in either order, and the judgement waits for both.
"""

from __future__ import annotations

from dataclasses import replace

from midwatch.agents.detect.incident.turn import Turn
from midwatch.streams.records import Finding, Resumption
from midwatch.streams.records.incidents import RESUMED

IGNORED = "checkpoint_ignored"

_REMEDY = (
    "let the training load MIDWATCH_RESUME_FROM, or name its option with "
    "`midwatch run --resume-arg '--load {checkpoint}'`"
)


def next_attempt(old: Resumption, step: int | None) -> Resumption:
    """What the next attempt knows of the one before, whose last step is `step`."""
    return Resumption(
        step_before=step if step is not None else old.step_before,
        interval_before=old.interval or old.interval_before,
        from_zero=old.from_zero or (old.told_step is None and old.first_step == 0),
    )


def judge(turn: Turn) -> None:
    """Say once where the attempt went on, when both its checkpoint and its first step are known."""
    state, known = turn.state, turn.state.resumption
    told, first = known.told_step, known.first_step
    if known.judged or told is None or first is None:
        return
    turn.set(resumption=replace(known, judged=True))
    one_unit = known.step_before is not None and told <= known.step_before + (known.interval_before or 1)
    lost = max(known.step_before - told, 0) if one_unit and known.step_before is not None else None
    quantities = {"checkpoint_step": str(told), "first_step": str(first)}
    if lost is not None:
        quantities["steps_lost"] = str(lost)
    age = max(state.started_ms - known.written_ms, 0) // 1000 if known.written_ms else None
    if age is not None:
        quantities["checkpoint_age_s"] = str(age)
    which = f"the checkpoint of step {told}{'' if age is None else f', written {_span(age)} before'}"
    if first < told and one_unit:
        detail = f"went on at {first}, below {which}: {_REMEDY}"
        turn.open_finding(IGNORED, detail, quantities=quantities)
        return
    lowest = told if known.from_zero else told + 1
    if lowest <= first <= told + (known.interval_before or 1):
        detail = f"resumed from {told}: its first step is {first}"
    else:
        detail = f"went on at {first}, and was told {which}"
    if age is not None and detail.startswith("resumed"):
        detail += f"; the checkpoint was written {_span(age)} before"
    if lost is not None:
        detail += f"; {lost} {'step' if lost == 1 else 'steps'} lost"
    turn.emit(Finding(state.job, state.attempt, RESUMED, False, turn.now_ms, detail, (), quantities))


def _span(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
