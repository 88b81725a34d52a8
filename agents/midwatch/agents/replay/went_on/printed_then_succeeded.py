"""Printed, then succeeded: the program printed its failure itself, and told of its success behind it. Pure.

A program that a failure ends prints no success. But a script may print one behind a program that crashed. So
the program must have caught the failure. Either a handler printed the traceback, and did not call the whole
run failed. Or one logger wrote the failure, in a line of its own, and the success. Or its line names a file
that a loop could not take, and the program wrote its results behind it. A process that crashed above caught
nothing, nor did one that torchrun lists as failed. And no logger catches a loss that stays no number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, line_of, lines_behind
from midwatch.agents.replay.went_on.aftermath import printed_by_a_handler, tells_an_end
from midwatch.agents.replay.went_on.good_ends import (
    all_voices_tell,
    good_ends,
    has_written,
    says_exit_zero,
    says_it_ended_well,
)
from midwatch.agents.replay.went_on.tried_again import tried_again
from midwatch.streams.lines.log_levels import is_quiet
from midwatch.streams.records import Hit

_HEAD = 60
_CRASHED = "Fatal Python error: "
_LISTED = "torchrun_child_failed"
_OF_CLIENTS = (
    "service_refused",
    "no_way_to_the_peer",
    "web_request_failed",
    "hub_unreachable",
    "hub_refused",
)
_LONGEST = 120  # lines of a traceback
_ABOVE = 2  # lines above its header
_HEADER = "Traceback (most recent call last):"
_BELOW = "Set the environment variable HYDRA_FULL_ERROR=1"
_AGAIN = re.compile(r"(?i)\b(?:re-?start|resum|re-?try)")
_NEAR = 8  # lines behind an exception, whose words may have some
_OF_A_FILE = re.compile(r"\A\W*Error processing [\"']?/?[\w.@+-]*(?:/[\w.@+-]+)*\.\w{2,5}[\"']?: ")
"""A loop names the file that it could not take."""
# Hydra shows the exception of its job so, and exits. Others tell that the run itself failed, and exit, too.
_OF_THE_RUN = re.compile(
    r"\bError executing job with overrides: "
    r"|(?i:\b(?:training|fine-?tuning|pre-?training|run|job|experiment|pipeline|main)(?: has| was)?"
    r" (?:failed|crashed|aborted)\b)"
)
_LEVEL = re.compile(r"\b(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b")
_INFORMS = re.compile(r"\bINFO\b")
_PARTS = re.compile(r"[\s:|]+")
_DIGITS = re.compile(r"\d+")


def got_over_by_its_word(
    last: Sequence[tuple[LogFile, int]], held: Sequence[Hit], hits: Sequence[Hit], *, succeeded: bool
) -> str:
    """How the job's own word of success shows that it got over its failures; "" if none does.

    `last`: files with a failure, and the line of the last one. `held`: the failures that no later step has
    undone. `hits`: all hits of the job. `succeeded`: its word counts. Raises OSError.
    """
    crashed = any(_CRASHED in hit.line.text or hit.rule == _LISTED for hit in held)
    if last and not crashed and all(_printed_then_succeeded(*each, held, hits) for each in last):
        return "the program itself printed its last failure, and told of its success behind it"
    if last and all(says_it_ended_well(*each) or all_voices_tell(*each) for each in last):
        return "behind the last failure the job told of its good end, and of exit code 0 or by all loggers"
    if last and held and all(_of_a_client(hit) for hit in held) and all(has_written(*each) for each in last):
        return "only services failed, and the job wrote its results behind that"
    if last and not any(map(tells_an_end, held)) and all(tried_again(*each) for each in last):
        return "the program tried the same once more behind its last failure, and that try succeeded"
    succeeded = succeeded or all(
        good_ends(file) or good_ends(file, before=_first(file, held)) for file, _ in last
    )
    if succeeded and held and all(hit.captures.get("in_a_thread") and not _is_of_a_disk(hit) for hit in held):
        return "behind the job's word of its success only threads failed"  # which take no process with them
    return ""


def _printed_then_succeeded(file: LogFile, last: int, held: Sequence[Hit], hits: Sequence[Hit]) -> bool:
    """Whether the file's last failure, counted up to line `last`, is such."""
    if is_quiet(line_of(file, last).encode()):
        last = max((hit.line.number for hit in held if hit.line.path == file.path), default=last)
    done = [
        hit.line.number
        for hit in hits
        if hit.role == "success" and hit.line.path == file.path and hit.line.number > last
    ]
    done += [number for number in good_ends(file) if number > last]
    if printed_by_a_handler(file, last):
        return not _is_of_the_run(file, last) and (bool(done) or says_exit_zero(file, last))
    of_numbers = any(hit.error_type == "numerical_instability" and hit.line.path == file.path for hit in held)
    of_a_file = _OF_A_FILE.match(line_of(file, last)) is not None and has_written(file, last)
    return not of_numbers and (of_a_file or _logged_as(file, last, done))


def _is_of_the_run(file: LogFile, last: int) -> bool:
    """Whether a line above the traceback that ends in line `last`, or Hydra's below it, says so.

    Not where the program says right below that it begins again.
    """
    below = list(islice(lines_behind(file, last), _NEAR))
    if any(map(_AGAIN.search, below)):
        return False
    if any(_BELOW in line for line in below):
        return True
    first = max(last - _LONGEST, 0)
    lines = list(islice(lines_behind(file, first), last - first))
    header = max((at for at, line in enumerate(lines) if _HEADER in line), default=0)
    return any(map(_OF_THE_RUN.search, lines[max(header - _ABOVE, 0) : header]))


def _logged_as(file: LogFile, last: int, done: Sequence[int]) -> bool:
    """Whether one logger wrote line `last` and of a success. What it logs with a traceback it may raise.

    A failure that counts although its line is called information is another program's, and only copied.
    """
    if _INFORMS.search(line_of(file, last)[:_HEAD]):
        return False
    return any(_same_logger(line_of(file, last), line_of(file, number)) for number in done)


def _same_logger(one: str, other: str) -> bool:
    """Whether two records have the same stamp and form, with a name or a time besides their level."""
    parts, others = _parts(one), _parts(other)
    same = next(
        (at for at, pair in enumerate(zip(parts, others, strict=False)) if pair[0] != pair[1]),
        min(len(parts), len(others)),
    )
    return same > 1 and "LEVEL" in parts[:same]


def _parts(line: str) -> list[str]:
    found = _LEVEL.search(line[:_HEAD])
    if found is None:
        return []
    return _PARTS.split(_DIGITS.sub("0", f"{line[: found.start()]} LEVEL {line[found.end() :]}").strip())


def _first(file: LogFile, held: Sequence[Hit]) -> int:
    return min((hit.line.number for hit in held if hit.line.path == file.path), default=0)


def _is_of_a_disk(hit: Hit) -> bool:
    """Whether it is: what a thread could not write is missing, whatever the job says."""
    return hit.error_type == "storage"


def _of_a_client(hit: Hit) -> bool:
    return hit.rule in _OF_CLIENTS
