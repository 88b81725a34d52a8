"""Rows of the JSON that sacct, scontrol and squeue print. Its shape differs by version. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from midwatch.agents.schedulers.slurm.saved_rows import SavedRow
from midwatch.agents.schedulers.slurm.text import STATES, exit_status, job_state

_FIRST = ("REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")


def rows_of_json(job: Mapping[str, Any]) -> Iterator[SavedRow]:
    """The row of a job and those of its steps. Nothing if it shows no state."""
    word, reason = _word(job)
    if not word:
        return
    code, signal = _codes(job.get("exit_code"))
    if person := job.get("kill_request_user"):
        word = f"{word} by {person}" if word == "CANCELLED" else word
    raw, name = _id(job.get("job_id")), _name(job)
    component = _number(job.get("het_job_offset")) if _number(job.get("het_job_id")) else None
    part = f"+{component}" if component else ""
    restarts = _number(job.get("restart_cnt")) or 0
    yield SavedRow(name, word, reason, code, signal, part=part, raw=raw, restarts=restarts)
    steps = job.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if not isinstance(step, Mapping):
            continue
        word, reason = _word(step)
        if word:
            code, signal = _codes(step.get("exit_code"))
            yield SavedRow(name, word, reason, code, signal, part=_step(step.get("step")))


def _word(record: Mapping[str, Any]) -> tuple[str, str]:
    """The state of a job or step, and the reason for it. Of several words the one that tells an end."""
    shown, reason = record.get("state", record.get("job_state")), record.get("state_reason", "")
    of: Mapping[str, Any] = shown if isinstance(shown, Mapping) else {"current": shown, "reason": reason}
    state, reason = of.get("current"), of.get("reason", "")
    words = [word for word in (state if isinstance(state, list) else [state]) if isinstance(word, str)]
    again = [word for word in words if word in _FIRST]
    over = [word for word in words if word in STATES and job_state(word, "", None, None).over]
    return next(iter((*again, *over, *words)), ""), str(reason)


def _name(job: Mapping[str, Any]) -> str:
    """The id as sacct's text has it: `8812`, or `8812_3` for a task of an array."""
    if leader := _number(job.get("het_job_id")):
        return str(leader)
    array = job.get("array")
    of: Mapping[str, Any] = array if isinstance(array, Mapping) else {}
    number = _number(of.get("job_id", job.get("array_job_id")))
    task = _number(of.get("task_id", job.get("array_task_id")))
    return f"{number}_{task}" if number and task is not None else _id(job.get("job_id"))


def _step(step: object) -> str:
    """The name of a step, `0` or `batch`, of its id: text, a number, or an object."""
    known = step.get("id") if isinstance(step, Mapping) else ""
    known = known.get("step_id", "") if isinstance(known, Mapping) else known
    return str(known).rpartition(".")[2] or "step"


def _codes(code: object) -> tuple[int | None, int | None]:
    """Exit code and signal. A bare number is the raw wait status; version 22.05 prints 0 for any end."""
    if not isinstance(code, Mapping):
        number = _number(code)
        return exit_status(str(number)) if number else (None, None)
    signal = code.get("signal")
    number = signal.get("id", signal.get("signal_id")) if isinstance(signal, Mapping) else None
    return _number(code.get("return_code")), _number(number) or None


def _id(value: object) -> str:
    number = _number(value)
    return "" if number is None else str(number)


def _number(value: object) -> int | None:
    """A number of SLURM's JSON: plain, in text, or in an object that tells whether it is set."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set", True) else None
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
