"""Parses the output of SLURM's tools. Pure.

`squeue -O` with a width and a separator for each field prints the same on 22.05, 24.11 and 26.05. JSON does
not: its shape changed with each of them, and in 22.05 it has a wrong exit code.
"""

from __future__ import annotations

import re
from datetime import datetime

from midwatch.agents.schedulers.base import SOMEBODY, Kind, SchedulerEpoch, SchedulerJob, StartState
from midwatch.streams.records import Mode
from midwatch.streams.records.identity import slurm_incarnation

NATIVE_ID = re.compile(r"\d+(_\d+)?")
KEY_PREFIX = "mw:"
TASK_PREFIX = "task:"
_KEY = re.compile(r"mw:([0-9A-Za-z]+)(?: |$)")
_TASK = re.compile(r"mw:[0-9A-Za-z]+ task:(\d+)(?: |$)")

# The width of the comment is enough for the key. Fields that people fill come last.
SQUEUE_FIELDS = (
    "JobArrayID:40|,State:24|,RestartCnt:12|,exit_code:16|,StartTime:24|,Reason:60|,UserName:40|,Comment:64"
)
SACCT_FIELDS = "State,ExitCode"

_KINDS: dict[str, Kind] = {
    "PENDING": "queued",
    "REQUEUED": "queued",
    "REQUEUE_FED": "queued",
    "POWER_UP_NODE": "queued",
    "RESV_DEL_HOLD": "held",
    "REQUEUE_HOLD": "held",
    "SPECIAL_EXIT": "held",
    "CONFIGURING": "running",
    "RUNNING": "running",
    "SUSPENDED": "running",
    "STOPPED": "running",
    "SIGNALING": "running",
    "RESIZING": "running",
    "COMPLETING": "ending",
    "STAGE_OUT": "ending",
}
_ENDED: dict[str, tuple[Mode, str]] = {
    "COMPLETED": ("success", ""),
    "FAILED": ("crash", "slurm_failure"),
    "LAUNCH_FAILED": ("crash", "slurm_failure"),
    "NODE_FAIL": ("crash", "slurm_failure"),
    "BOOT_FAIL": ("crash", "slurm_failure"),
    "OUT_OF_MEMORY": ("crash", "host_oom"),
    "TIMEOUT": ("timeout", "slurm_failure"),
    "DEADLINE": ("timeout", "slurm_failure"),
    "CANCELLED": ("ended", "cancelled"),
    "REVOKED": ("ended", "cancelled"),
    "PREEMPTED": ("ended", "preemption"),
}
STATES = frozenset((*_KINDS, *_ENDED))
_NO_PERSON = ("0", "root")
_OWN_CANCEL = re.compile(r"DependencyNeverSatisfied|Assoc\w+|QOS\w+|Invalid(?:Account|QOS)")
"""Reasons for which slurmctld cancels a job by itself."""


def queue(text: str) -> tuple[SchedulerJob, ...]:
    """The jobs of `squeue -h -r -t all -O SQUEUE_FIELDS`. Raises ValueError on a malformed row."""
    return tuple(job for line in text.splitlines() if line.strip() and (job := _row(line)) is not None)


def _row(line: str) -> SchedulerJob | None:
    parts = line.split("|", 7)
    if len(parts) != 8:
        raise ValueError(f"not a row of squeue: {line[:120]!r}")
    native, word, restarts, status, started, reason, user, comment = (part.strip() for part in parts)
    if native.endswith("+0"):  # the leader of a heterogeneous job stands for all of it
        native = native.removesuffix("+0")
    if not NATIVE_ID.fullmatch(native):
        return None  # a further component, or the rest of an array not split yet: no start of its own
    if "_" not in native and (task := _TASK.match(comment)):
        native = f"{native}_{task[1]}"  # SLURM forgets the index of a task that is cancelled before it runs
    return SchedulerJob(
        native_id=native,
        incarnation=slurm_incarnation(native, int(restarts)),
        state=job_state(word, reason, *exit_status(status)),
        effect_key=effect_key_in(comment),
        user=user,
        started="" if started == "N/A" else started,
    )


def job_state(word: str, reason: str, exit_code: int | None, signal: int | None) -> StartState:
    """The state for a word of squeue, scontrol or sacct (`CANCELLED by 1000` too) and its reason."""
    base, _, tail = word.partition(" ")
    base = base.rstrip("+")
    shown = "" if reason in ("None", "(null)", "") else reason
    if base in _ENDED:
        mode, error_type = _ENDED[base]
        if base == "FAILED" and exit_code == 0 and not signal:
            exit_code = None  # it ended before a process had a code, or the version prints none
        return StartState(
            "ended",
            word=base,
            mode=mode,
            error_type=error_type,
            exit_code=exit_code,
            signal=signal,
            reason=shown,
            by_person=_canceller(tail, shown) if base == "CANCELLED" else "",
        )
    kind = _KINDS.get(base, "unknown")
    if kind == "queued" and shown.startswith("JobHeld"):
        kind = "held"
    return StartState(kind, word=base, reason=shown)


def _canceller(tail: str, reason: str) -> str:
    """Who cancelled, by what stands behind the word; "" if SLURM did it itself, for that reason."""
    name = tail.removeprefix("by ") if tail.startswith("by ") else ""
    if _OWN_CANCEL.fullmatch(reason) and name in ("", *_NO_PERSON):
        return ""
    if not name or name.endswith("+"):  # a narrow column cut the name
        return SOMEBODY
    return f"uid {name}" if name.isdigit() else name


def whole_word(word: str) -> str:
    """The state of which sacct shows the beginning in a narrow column, such as `OUT_OF_ME+`.

    Raises ValueError: no state begins so, or several do.
    """
    base, _, tail = word.partition(" ")
    if not base.endswith("+") or base[:-1] in STATES:
        return word.replace("+", "", 1) if base.endswith("+") else word
    states = sorted(state for state in STATES if state.startswith(base[:-1]))
    if len(states) != 1:
        which = f"several states begin so: {', '.join(states)}" if states else "no state begins so"
        raise ValueError(f"the state is cut to {base}, and {which}")
    return f"{states[0]} {tail}".rstrip()


def exit_status(text: str) -> tuple[int | None, int | None]:
    """Exit code and signal, from `3:0` or from the raw wait status (768)."""
    if ":" in text:
        code, _, number = text.partition(":")
        return int(code), int(number) or None
    if not text.isdigit():
        return None, None
    return int(text) >> 8, (int(text) & 0x7F) or None


def effect_key_in(comment: str) -> str:
    """The effect key at the beginning of a comment; "" if there is none."""
    found = _KEY.match(comment)
    return found[1] if found else ""


def from_sacct(text: str, restarts: int) -> StartState | None:
    """The state of start number `restarts` from `sacct -n -P -X -D`, one row a start; None without a row."""
    rows = [line.split("|") for line in text.splitlines() if line.strip()]
    if len(rows) <= restarts:
        return None
    word, status = rows[restarts][:2]
    return job_state(word, "", *exit_status(status))


def epoch(text: str) -> SchedulerEpoch:
    """The epoch from `scontrol show config`. Both times are slurmctld's, so our clock does not matter."""
    booted = re.search(r"^BOOT_TIME\s*=\s*(\S+)", text, re.M)
    printed = re.search(r"^Configuration data as of (\S+)", text, re.M)
    if not booted or not printed:
        raise ValueError("scontrol show config prints no BOOT_TIME")
    age = datetime.fromisoformat(printed[1]) - datetime.fromisoformat(booted[1])
    return SchedulerEpoch(booted[1], max(0.0, age.total_seconds()))


def accounts(text: str) -> bool:
    """Whether `scontrol show config` names an accounting storage that sacct can read."""
    found = re.search(r"^AccountingStorageType\s*=\s*(\S+)", text, re.M)
    return found is not None and not re.search("none|null", found[1], re.IGNORECASE)  # "(null)" since 24.11


_UNCLEAR = re.compile(
    r"Socket timed out|Unable to contact|Zero Bytes|Connection (?:refused|reset|timed out)|Communication|"
    r"temporarily|try again|Rate limit|Unexpected message|in standby|munge",
    re.IGNORECASE,
)


def is_final(error: str) -> bool:
    """Whether sbatch's error means that it made no job, and that a second try would fail too."""
    return "sbatch: " in error and not _UNCLEAR.search(error)
