"""A good end that something contradicts: the job's last step, or the last lines of its log.

A script that pipes its trainer into `tee`, or goes on behind a failed srun, ends with code 0. The job's own
word of success outweighs both, and so does its last step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from midwatch.agents.detect.incident.state import JobState
from midwatch.agents.replay.reading.log_files import LogFile, lines_behind
from midwatch.agents.replay.went_on.aftermath import LastFailure, leaves_the_script, ordinary, tells_an_end
from midwatch.agents.schedulers.base import StartState
from midwatch.agents.schedulers.saved_job import FailedLastStep
from midwatch.streams.records import Hit
from midwatch.streams.records.error_types import family

_READ = 400
_SUMMARY = 30
"""Lines in which a launcher sums up how its processes ended."""
_AWAY = ("network", "storage")
"""What a program may tell of with its whole stack, and get over: a service or a store that is away."""


def counted_end(end: StartState, failed: FailedLastStep | None, state: JobState) -> StartState:
    """The end that counts: that of the failed last step, unless the job's lines speak against it.

    Where another step ended well, the last one may only have cleaned up. Then a failure in the log must
    agree.
    """
    if failed is None or is_done(state) or not (failed.only or state.held):
        return end
    return failed.state


def failure_at_the_end(
    state: JobState, files: Sequence[LogFile], failures: LastFailure, hits: Sequence[Hit]
) -> str:
    """The place of the failure in which the log ends though the job ended well; "" if it does not end so.

    It is an exception that left the script, or the word of a shell or a launcher. No line of work stands
    behind it. Where several files print steps, each must end so: the other ones may be of a later attempt.
    """
    if is_done(state) or not state.held:
        return ""
    of_file: dict[str, list[Hit]] = {}
    for hit in hits:
        of_file.setdefault(hit.line.path, []).append(hit)
    ends = {file.path for file in files if _ends_in_failure(file, failures, of_file.get(file.path, []))}
    left = {each.hit.line.path for each in state.held}
    held = [file.path for file in files if file.path in ends & left]
    stepped = failures.last_step.keys()
    if not held or (len(stepped) > 1 and not stepped <= ends):
        return ""
    return f"{held[0]}:{failures.numbers[held[0]]}"


def is_done(state: JobState) -> bool:
    """Whether the job told of its success, or made the last of its steps."""
    last = state.step is not None and state.total is not None and state.step >= state.total
    return state.succeeded or last


def _ends_in_failure(file: LogFile, failures: LastFailure, hits: Sequence[Hit]) -> bool:
    """Whether the file's last failure ended a process, and no work stands behind it. `hits`: of the file."""
    last = failures.numbers.get(file.path)
    if last is None or any(ordinary(islice(lines_behind(file, last), _READ))):
        return False
    near = [hit for hit in hits if last - _SUMMARY <= hit.line.number <= last]
    own = [hit for hit in near if hit.line.number == last and hit.role in ("cause", "consequence")]
    if any(family(hit.error_type) == "stopped" for hit in own):
        return False
    if all(hit.role == "consequence" for hit in own):
        own = near  # the last lines of a summary; its first ones say whose it is
    elif leaves_the_script(file, last):
        return not any(hit.subsystem in _AWAY for hit in own)
    return any(map(tells_an_end, own))
