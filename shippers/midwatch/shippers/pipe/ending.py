"""How a command ended, on its way from the process that started it to the topic `events`. Pure."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import msgspec

from midwatch.streams.records import Mode, Origin, SchedulerFact
from midwatch.streams.records.codec import UNREADABLE
from midwatch.streams.records.identity import native_id

SOMEBODY = "somebody"
"""Who ended a command by a signal: no container engine names the person."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a command. `code`: its exit code, or minus the signal's number. `at`: wall clock.

    `asked`: somebody sent SIGTERM or SIGINT to `midwatch ship` before the end, so the end is a cancel.
    """

    code: int
    at: float
    asked: bool = False


def to_bytes(ending: Ending) -> bytes:
    """The ending as the content of the spool's file `end`."""
    return msgspec.json.encode(asdict(ending))


def from_bytes(content: bytes) -> Ending | None:
    """The inverse; None if the spool ended without a known ending."""
    try:
        return msgspec.json.decode(content, type=Ending)
    except UNREADABLE:
        return None


def fact(origin: Origin, ending: Ending) -> SchedulerFact:
    """The ending as detect folds it: in the words of the cluster `local` for a process of this machine."""
    number = -ending.code if ending.code < 0 else None
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ending.at))
    word: str
    mode: Mode
    word, mode = ("COMPLETED", "success") if ending.code == 0 else ("FAILED", "crash")
    if ending.asked:
        word, mode = "CANCELLED", "ended"
    return SchedulerFact(
        job=origin.job,
        incarnation=origin.incarnation,
        native_id=native_id(origin.incarnation),
        old="RUNNING",
        new=word,
        ended=True,
        mode=mode,
        error_type="cancelled" if ending.asked else "",
        exit_code=None if number else ending.code,
        signal=number,
        reason=f"its parent process saw the end at {moment}",
        by_person=SOMEBODY if ending.asked else "",
        cluster=origin.job.partition(":")[0],
    )
