"""Outlived failures: the job still worked when it ended, or another program ran behind them. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from operator import attrgetter

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate
from midwatch.agents.detect.diagnosis.noted_lines import LEFT_THE_SCRIPT
from midwatch.agents.detect.diagnosis.relations.refusals import ANOTHER_PROGRAM, Refusals
from midwatch.agents.detect.diagnosis.relations.surroundings import Surroundings
from midwatch.agents.detect.line_order import FirstAndLast
from midwatch.streams.records import Hit

IN_A_THREAD = "in_a_thread"
"""The capture of an exception that ended a thread beside the main one."""
_OF_A_SHELL = ("shell_cannot_start", "option_as_command", "letter_as_command")
_NO_ENVIRONMENT = "conda_environment_missing"
_OF_A_STEP = "error: execve(): "
"""A step of SLURM that found no program to run. The script may go on with its next one."""
# srun and mpirun print it in front of each line of what they launched, and of nothing else.
_LAUNCHED = re.compile(r"\s{0,5}\d{1,6}: |\[\d+(?:,[\w:-]+)*\]<std")
OF_A_PROGRAM = 12
"""Lines between a shell's failure and the exception of a program that it launched behind it."""
_OF_THE_JOB = "*** JOB "
_AT_ONCE = 5
"""A loop may try the same command again until somebody cancels it, with so few lines behind its last try."""
_number = attrgetter("line.number")


def thread_of_a_job_taken_away(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A thread had ended, and its process worked on until the scheduler took the job away."""
    if IN_A_THREAD not in hit.captures:
        return None
    taken = around.once(_taken_away).behind(hit.line)
    return None if taken is None else RootCandidate(hit, NotRoot("taken away since", taken.line))


def _taken_away(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(hit for hit in around.hits if hit.rule == "slurm_preempted")


def another_program_since(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A program that refuses its command line ends there. What fails behind it may belong to a later one."""
    later = around.once(_refusals).later_program(hit)
    if later is None:
        return None
    return RootCandidate(hit, NotRoot("another program since", later.line))


def _refusals(around: Surroundings) -> Refusals:
    return Refusals(around.causes)


def script_went_on(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A command of a batch script failed, and the script went on with what it launched, which then failed.

    A shell goes on behind a word that is no command. A time limit or a cancel shows that it did. A program
    of the script itself prints no label of `srun`, and what stands behind it with one was launched later.
    """
    if hit.rule in (*_OF_A_SHELL, _NO_ENVIRONMENT):
        others = around.once(_others)[hit.line.file]
    elif _OF_A_STEP in hit.line.text:
        others = around.once(_other_causes)[hit.line.file]
    elif LEFT_THE_SCRIPT in hit.captures and _LAUNCHED.match(hit.line.text) is None:
        others = around.once(_launched)[hit.line.file]
    else:
        return None
    at = bisect_right(others, hit.line.number, key=_number)
    later = others[at:]
    if hit.rule in _OF_A_SHELL and (ended := next((each for each in later if _still_ran(hit, each)), None)):
        return RootCandidate(hit, NotRoot("script went on", ended.line))
    if not later or later[0].line.number - hit.line.number < _enough_for(hit, later[0]):
        return None
    return RootCandidate(hit, NotRoot("script went on", later[0].line))


def _still_ran(hit: Hit, ended: Hit) -> bool:
    """Whether a scheduler ended a job that still ran: by its time limit, or by a cancel some lines behind."""
    cancelled = ended.rule == "slurm_cancelled" and _OF_THE_JOB in ended.line.text
    return ended.mode == "timeout" or (cancelled and ended.line.number - hit.line.number > _AT_ONCE)


def _enough_for(hit: Hit, other: Hit) -> int:
    """The lines between the two that show another program.

    A command that is missing hardly makes a program raise an exception of its own, but that a module is gone.
    Without its environment a script goes on at once.
    """
    if hit.rule == _NO_ENVIRONMENT:
        return 1
    own = hit.rule in _OF_A_SHELL and other.rule == "python_exception"
    return OF_A_PROGRAM if own else ANOTHER_PROGRAM


def _others(around: Surroundings) -> dict[tuple[str, str], list[Hit]]:
    """By file, in their order, the failures that no shell tells of."""
    return _by_file([hit for hit in around.hits if hit.rule not in _OF_A_SHELL])


def _other_causes(around: Surroundings) -> dict[tuple[str, str], list[Hit]]:
    """By file, in their order, the causes beside those of steps without a program."""
    return _by_file([hit for hit in around.causes if _OF_A_STEP not in hit.line.text])


def _launched(around: Surroundings) -> dict[tuple[str, str], list[Hit]]:
    """By file, in their order, the causes with the label of a launcher."""
    return _by_file([hit for hit in around.causes if _LAUNCHED.match(hit.line.text) is not None])


def _by_file(hits: list[Hit]) -> dict[tuple[str, str], list[Hit]]:
    found: dict[tuple[str, str], list[Hit]] = defaultdict(list)
    for hit in sorted(hits, key=_number):
        found[hit.line.file].append(hit)
    return found
