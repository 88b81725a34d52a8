"""The scheduler's record of an ended job, as a person saved it, for the replay of a saved log. Pure.

`sacct -j ID`, `sacct -P`, `sacct --json`, `scontrol show job ID` and a job of Ray's Jobs API are read. Only
the row of the job itself counts, not those of its steps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from midwatch.agents.schedulers.base import StartState
from midwatch.agents.schedulers.ray import states
from midwatch.agents.schedulers.slurm.text import job_state
from midwatch.streams.errors import UsageError

_FIELD = re.compile(r"\b(JobState|Reason|ExitCode)=(\S*)")
_REMEDY = "save the output of sacct, sacct --json, scontrol show job, or of Ray's GET /api/jobs/ID"
_SIGNALLED = 128


def from_exit_code(code: int) -> StartState:
    """The end of a process that a shell reports by this code. Above 128 it names a signal."""
    if code == 0:
        return StartState("ended", "COMPLETED", "success", exit_code=0)
    signal = code - _SIGNALLED if _SIGNALLED < code < 2 * _SIGNALLED else None
    signal = -code if code < 0 else signal
    return StartState("ended", "FAILED", "crash", "", None if signal else code, signal)


def from_text(text: str, where: str) -> StartState:
    """The state in a saved record.

    Raises:
        UsageError: no state of an ended job stands there.
    """
    state = _from_json(text) if text.lstrip().startswith(("{", "[")) else _from_lines(text)
    if state is None:
        raise UsageError("no state of a job stands there", where=where, remedy=_REMEDY)
    if not state.over:
        raise UsageError(f"the job had not ended: {state.word}", where=where, remedy="replay needs its end")
    return state


def _from_lines(text: str) -> StartState | None:
    shown = dict(_FIELD.findall(text))
    if "JobState" in shown:
        return job_state(shown["JobState"], shown.get("Reason", ""), *_codes(shown.get("ExitCode", "")))
    rows = [line for line in text.splitlines() if line.strip()]
    if len(rows) < 2:
        return None
    spans = [] if "|" in rows[0] else [found.span() for found in re.finditer("-+", rows[1])]
    head, *below = (_cells(row, spans) for row in rows)
    if "State" not in head:
        return None
    for cells in below:
        row = dict(zip(head, cells, strict=False))
        if set(row.get("State", "-")) != {"-"} and "." not in row.get("JobID", ""):
            return job_state(row["State"], row.get("Reason", ""), *_codes(row.get("ExitCode", "")))
    return None


def _cells(row: str, spans: list[tuple[int, int]]) -> list[str]:
    """The cells of a row: between bars, or in the columns that sacct's line of dashes shows."""
    if not spans:
        return [cell.strip() for cell in row.split("|")]
    return [row[start:end].strip() for start, end in spans]


def _codes(text: str) -> tuple[int | None, int | None]:
    code, colon, signal = text.partition(":")
    if not colon or not code.isdigit() or not signal.isdigit():
        return None, None
    return int(code), int(signal) or None


def _from_json(text: str) -> StartState | None:
    try:
        record = json.loads(text)
    except ValueError:
        return None
    if isinstance(record, Mapping) and "status" in record:
        return states.state(record)
    jobs = record.get("jobs") if isinstance(record, Mapping) else record
    job = jobs[0] if isinstance(jobs, list) and jobs else None
    return _of_slurm(job) if isinstance(job, Mapping) else None


def _of_slurm(job: Mapping[str, Any]) -> StartState | None:
    """A job of `sacct --json` or `scontrol show job --json`, whose shape differs between versions."""
    state = job.get("state", job.get("job_state"))
    if isinstance(state, Mapping):
        reason, state = str(state.get("reason", "")), state.get("current")
    else:
        reason = str(job.get("state_reason", ""))
    word = state[0] if isinstance(state, list) and state else state
    if not isinstance(word, str):
        return None
    code = job.get("exit_code")
    status = code if isinstance(code, Mapping) else {}
    signal = status.get("signal")
    number = signal.get("id", signal.get("signal_id")) if isinstance(signal, Mapping) else None
    return job_state(word, reason, _number(status.get("return_code")), _number(number) or None)


def _number(value: object) -> int | None:
    """A number of SLURM's JSON: plain, or in an object that tells whether it is set."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set", True) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
