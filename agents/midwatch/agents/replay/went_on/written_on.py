"""Written on: a cancelled job's lines go on behind its cancel, so something of it may still run. Pure.

A launcher that lost its terminal is gone, but the next start may write to the same file, or a process lives
on. A restart beside it would be a second one, so it waits for a person. Ranks that print their last lines
after the cancel print few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind
from midwatch.agents.replay.reading.printed_forms import form_of_print
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.went_on.aftermath import ENOUGH, ordinary

_READ = 2000


def held_where_written_on(replayed: Replayed, files: Sequence[LogFile]) -> Replayed:
    """The replay, with a restart held where a cancelled job's lines go on. Raises OSError."""
    verdict = replayed.verdict
    if replayed.decision.action != "restart" or verdict.error_type != "cancelled":
        return replayed
    file = next((each for each in files if each.path == verdict.root_file), None)
    told = [
        hit.line.number
        for hit in replayed.hits
        if hit.line.path == verdict.root_file and hit.role in ("cause", "consequence")
    ]
    if file is None or not told or not _goes_on(file, min(told), max(told)):
        return replayed
    reason = f"the job's lines go on behind {file.path}:{max(told)}, so something of it may still run"
    return replace(replayed, decision=replace(replayed.decision, action="hold", reason=reason))


def _goes_on(file: LogFile, first: int, last: int) -> bool:
    start = max(first - 1 - _READ, 0)
    above = _forms(islice(lines_behind(file, start), first - 1 - start))
    behind = ordinary(islice(lines_behind(file, last), _READ))
    return sum(1 for line in behind if form_of_print(line) in above) >= ENOUGH


def _forms(lines: Iterable[str]) -> set[str]:
    return set(map(form_of_print, ordinary(lines)))
