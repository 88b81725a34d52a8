"""Where a new start really went on: its first step, against the checkpoint that it was told to load.

The executor's outcome, or the heartbeats of a start that chose for itself, name what the start was told.
The first step that the job prints shows what it loaded. The two may arrive in either order, and the judgement
waits for both. A checkpoint that counts epochs is compared with the epochs that the job prints.
"""

from __future__ import annotations

from dataclasses import replace

from midwatch.agents.activity import span
from midwatch.agents.detect.incident.turn import Turn
from midwatch.streams.records import CheckpointChoice, Finding, Resumption
from midwatch.streams.records.incidents import RESUMED

IGNORED = "checkpoint_ignored"
EPOCH_LINES = frozenset({"epoch_counted", "json_epoch"})
"""The rules of lines that count epochs: `Epoch 3/90 | loss 2.1`, `{"train_loss": 2.1, "epoch": 3}`."""

_REMEDY = (
    "let the training load MIDWATCH_RESUME_FROM, or name its option with "
    "`midwatch run --resume-arg '--load {checkpoint}'`"
)


def next_attempt(old: Resumption, step: int | None, *, worked: bool = False) -> Resumption:
    """What the next attempt knows of the one before, whose last step is `step`.

    `worked`: the one before made a step, or its own start was known to work.
    """
    return Resumption(
        step_before=step if step is not None else old.step_before,
        interval_before=old.interval or old.interval_before,
        from_zero=old.from_zero or (old.told_step is None and old.first_step == 0),
        epoch_before=old.epoch if old.epoch is not None else old.epoch_before,
        worked_before=worked,
    )


def was_told(turn: Turn, choice: CheckpointChoice) -> None:
    """Note what the attempt was told to load, and judge it if its first step is known."""
    known = turn.state.resumption
    if (known.told_step, known.told_path) == (choice.number, choice.path):
        return
    told = replace(
        known,
        told_step=choice.number,
        told_path=choice.path,
        unit=choice.unit,
        written_ms=choice.written_ms,
    )
    turn.set(checkpoint_step=choice.number, resumption=told)
    judge(turn)


def chose(turn: Turn, choice: CheckpointChoice) -> None:
    """Note what the attempt chose for itself, and report it: no outcome of the executor names it."""
    known = turn.state.resumption
    if (known.told_step, known.told_path) == (choice.number, choice.path):
        return
    if known.first_step is None and (choice.unit != "epoch" or known.first_epoch is None):
        told = replace(known, told_step=choice.number, unit=choice.unit, written_ms=choice.written_ms)
        quantities = {"checkpoint_step": str(choice.number), "checkpoint": choice.path}
        _emit(turn, f"was told to load {_which(turn, told)}", quantities)
    was_told(turn, choice)


def judge(turn: Turn) -> None:
    """Say once where the attempt went on, when both its checkpoint and its first step are known."""
    known = turn.state.resumption
    told, epochs = known.told_step, known.unit == "epoch" and known.first_epoch is not None
    first = known.first_epoch if epochs else known.first_step
    if known.judged or told is None or first is None:
        return
    turn.set(resumption=replace(known, judged=True))
    before = known.epoch_before if epochs else known.step_before
    interval = 1 if epochs else known.interval_before or 1
    same_unit = epochs or known.unit == "step"
    comparable = same_unit and before is not None and told <= before + interval
    lost = max(before - told, 0) if comparable and before is not None else None
    quantities = {"checkpoint_step": str(told), "first_step": str(first)}
    if known.told_path:
        quantities["checkpoint"] = known.told_path
    if known.unit == "epoch":
        quantities["unit"] = "epoch"
    if lost is not None:
        quantities["steps_lost"] = str(lost)
    age = _age_s(turn, known)
    if age is not None:
        quantities["checkpoint_age_s"] = str(age)
    which, name = _which(turn, known), "epoch" if epochs else "step"
    place = f"epoch {first}" if epochs else f"step {first}" if known.unit == "epoch" else str(first)
    if first < told and comparable:
        detail = f"went on at {place}, below {which}: {_REMEDY}"
        turn.open_finding(IGNORED, detail, quantities=quantities)
        return
    # A checkpoint within an epoch goes on in the same one.
    lowest = told if known.from_zero or epochs else told + 1
    if same_unit and lowest <= first <= told + interval:
        point = f"epoch {told}" if epochs else str(told)
        detail = f"resumed from {point}: its first {name} is {first}"
    else:
        detail = f"went on at {place}, and was told {which}"
        if lost is not None and before is not None:
            lost = max(before - (first if known.from_zero or epochs else first - 1), 0)
            quantities["steps_lost"] = str(lost)
    if age is not None and detail.startswith("resumed"):
        detail += f"; the checkpoint was written {span(age)} before"
    if lost is not None:
        detail += f"; {lost} {name}{'' if lost == 1 else 's'} lost"
    _emit(turn, detail, quantities)


def _emit(turn: Turn, detail: str, quantities: dict[str, str]) -> None:
    state = turn.state
    turn.emit(Finding(state.job, state.attempt, RESUMED, False, turn.now_ms, detail, (), quantities))


def _which(turn: Turn, known: Resumption) -> str:
    age = _age_s(turn, known)
    written = "" if age is None else f", written {span(age)} before"
    return f"the checkpoint of {known.unit} {known.told_step}{written}"


def _age_s(turn: Turn, known: Resumption) -> int | None:
    """How old the checkpoint was when the attempt began; None if unknown."""
    return max(turn.state.started_ms - known.written_ms, 0) // 1000 if known.written_ms else None
