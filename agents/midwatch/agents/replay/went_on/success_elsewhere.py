"""A success that another file tells of: exceptions of unknown time that the job got over before it. Pure.

Copies of an `.err` and an `.out` without a clock have no order to each other. So what was caught in the
middle of the training stands behind the job's success as well as in front of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from midwatch.agents.detect.diagnosis.noted_lines import ended_its_process
from midwatch.agents.detect.line_order import earlier
from midwatch.agents.replay.reading.log_files import LogFile, lines_behind
from midwatch.agents.replay.went_on.aftermath import ordinary, tells_an_end
from midwatch.streams.records import Hit

_READ = 400


def got_over_before_the_success(
    held: Sequence[Hit], hits: Sequence[Hit], files: Sequence[LogFile], last: Mapping[str, int]
) -> str:
    """Where the job tells of its success, if all held failures may be what it got over; "" otherwise.

    Such a failure stands in another file and not certainly behind the success, was no end of a process, and
    ordinary lines follow it. `last`: the last failure line of each file. Raises OSError.
    """
    success = next((hit for hit in reversed(hits) if hit.role == "success"), None)
    if success is None or not held or not all(_may_be_caught(hit, success) for hit in held):
        return ""
    failed = [file for file in files if file.path in {hit.line.path for hit in held}]
    if not all(any(ordinary(islice(lines_behind(file, last[file.path]), _READ))) for file in failed):
        return ""
    return f"{success.line.path}:{success.line.number}"


def _may_be_caught(hit: Hit, success: Hit) -> bool:
    if hit.line.file == success.line.file or earlier(success.line, hit.line):
        return False
    return hit.role == "cause" and not ended_its_process(hit) and not tells_an_end(hit)
