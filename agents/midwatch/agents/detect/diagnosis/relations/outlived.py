"""Outlived failures: the job still worked when it ended, or another program ran behind them. Pure."""

from __future__ import annotations

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate
from midwatch.agents.detect.diagnosis.relations.refusals import Refusals
from midwatch.agents.detect.diagnosis.relations.surroundings import Surroundings
from midwatch.agents.detect.line_order import FirstAndLast
from midwatch.streams.records import Hit

IN_A_THREAD = "in_a_thread"
"""The capture of an exception that ended a thread beside the main one."""


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
