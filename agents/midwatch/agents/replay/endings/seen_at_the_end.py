"""The verdict on a failure that only the end of a saved log shows.

A person decides, with one exception: where the last words say that the machine was taken away, it may pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from midwatch.agents.detect.diagnosis.chance import chance_of, end_class, shipped
from midwatch.agents.replay.endings.closing_lines import CUT_NAME, WORDS, ClosingFailure, ends_within_a_name
from midwatch.agents.replay.endings.open_spike import LossLine
from midwatch.agents.replay.reading.log_files import LogFile, as_printed, line_of
from midwatch.agents.replay.replayed import Replayed
from midwatch.streams.records.error_types import family

_RAN_SHORT = re.compile(r"(?i)\b(?:memory|ram|disk|storage|quota|usage|limits?|exceed\w*|pressure)\b")
TAKEN = "the last lines say that the machine was taken away"


def with_spike(result: Replayed, error_type: str, first: LossLine, files: Sequence[LogFile]) -> Replayed:
    """The verdict on a log that ends in a spike. Such a start needs a person's decision."""
    shown = "no longer printed" if first.loss is None else f"{first.loss:g}"
    place = f"line {first.number}" if first.step < 0 else f"step {first.step}"
    reason = f"the loss is {shown} since {place}, and the log ends before it is back"
    verdict = replace(
        result.verdict,
        error_type=error_type,
        transient=False,
        root_file=first.path,
        root_line_number=first.number,
        remedy=_LOOK_AT_THE_STEP,
    )
    return _held(replace(result, verdict=verdict), reason, files, stepped=True)


def with_closing(result: Replayed, end: ClosingFailure | None, files: Sequence[LogFile]) -> Replayed:
    """The verdict on a log whose last lines show a failure of an unknown kind."""
    if end is None:
        return result
    taken = _is_taken(end, files) and result.verdict.error_type != "user_interrupt"  # else somebody ended it
    verdict = replace(
        result.verdict,
        error_type=end.error_type,
        rule="",
        transient=True if taken else None,
        root_file=end.path,
        root_line_number=end.number,
        remedy=_RESUME if taken else _LOOK_FOR_THE_REST,
    )
    held = _held(replace(result, verdict=verdict), end.how, files, stepped=verdict.step is not None)
    if not taken or held.decision.policy != "verdict":
        return held
    return replace(held, decision=replace(held.decision, action="restart", reason=TAKEN))


def _is_taken(end: ClosingFailure, files: Sequence[LogFile]) -> bool:
    """Whether the last words say that the machine was taken, and not that the job used too much of it."""
    if end.how != WORDS or end.error_type != "preemption":
        return False
    line = next(line_of(file, end.number) for file in files if file.path == end.path)
    return _RAN_SHORT.search(line) is None


def with_cut_name(result: Replayed, files: Sequence[LogFile]) -> Replayed:
    """The verdict held for a person, if the root is an exception whose name is cut off."""
    verdict, number = result.verdict, result.verdict.root_line_number
    file = next((file for file in files if file.path == verdict.root_file), None)
    if file is None or number is None or verdict.error_type != "exception":
        return result
    if not ends_within_a_name(file, number, verdict.root_line):
        return result
    unknown = replace(result, verdict=replace(verdict, transient=None))
    return _held(unknown, CUT_NAME, files, stepped=verdict.step is not None)


def _held(result: Replayed, reason: str, files: Sequence[LogFile], *, stepped: bool) -> Replayed:
    """The failure that only the end of the file shows, held for a person."""
    verdict = result.verdict
    number = verdict.root_line_number
    assert number is not None  # noqa: S101  # whoever finds such an end names its line
    file = next(file for file in files if file.path == verdict.root_file)
    verdict = replace(
        verdict,
        state="failed",
        mode="ended",
        family=family(verdict.error_type),
        root_line=as_printed(file, number, line_of(file, number)),
        chance=chance_of(end_class(verdict, stepped=stepped), shipped()),
    )
    decision = replace(result.decision, action="hold", reason=reason)
    return replace(result, verdict=verdict, decision=decision)


_LOOK_AT_THE_STEP = (
    "Look at the data and the learning rate around this step. Start from an earlier checkpoint if it stays."
)
_RESUME = "Somebody more urgent took the machine. The same start goes on when there is another one."
_LOOK_FOR_THE_REST = (
    "What failed is not known. See the logs of the other ranks and the scheduler's record, and read what "
    "stands above the line."
)
