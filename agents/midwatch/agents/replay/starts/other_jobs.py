"""Other jobs: where a file names another SLURM job than before, the next job has appended to it. Pure.

A batch script prints its job's id once a start, and SLURM ends a job but once. So lines with another id are
the next job's. So are the modules that a batch script loads behind a job's end, and what stands between the
ends of two jobs. Jobs that run at once print their ids in turns: such a file is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

PIECES = (b"SLURM_JOB", b"Job ID", b"JobID", b"*** JOB ")
"""One of these stands in each line that names a job."""

_JOB = rb"\b[\"']?\W{1,4}([1-9]\d{1,17})\b(?![.:/-])"
_OWN = re.compile(rb"\A\W{0,8}(?:export |declare -x )?SLURM_JOB_?ID" + _JOB)
_SAID = re.compile(rb"\A\W{0,8}(?:S(?:LURM|lurm) )?Job ?ID" + _JOB)
_ENDED = re.compile(rb"\*\*\* JOB ([1-9]\d{1,17}) ON \S+ CANCELLED AT ")
_LOADS = re.compile(rb"\ALoading [\w.+-]+/\d[\w.+-]*\s*\Z")
_FURTHER = 12  # lines behind an end among which the next script's first words stand
_COMPARED = 512


class JobPlace(NamedTuple):
    """Where a job's lines begin. `sure`: its own environment names it. A script may name others by words."""

    offset: int
    number: int
    sure: bool


class _JobWord(NamedTuple):
    job: bytes
    begins: bool
    place: JobPlace


def behind_other_jobs(lines: Iterable[tuple[int, int, bytes]]) -> Sequence[JobPlace]:
    """Where the next jobs begin, of lines with their offset and number."""
    named, end = list[_JobWord](), 0
    ended, behind = b"", JobPlace(0, 0, sure=True)
    for offset, number, line in lines:
        head = line[:_COMPARED]
        own = _OWN.search(head)
        if (found := own or _SAID.search(head)) is not None:
            named.append(_JobWord(found[1], True, JobPlace(offset, number, own is not None)))
            end = 0
        elif (found := _ENDED.search(head)) is not None:
            if ended and ended != found[1] and number - behind.number > _FURTHER:
                named.append(_JobWord(found[1], True, behind))
            ended, behind = found[1], JobPlace(offset + len(line) + 1, number + 1, sure=True)
            named.append(_JobWord(found[1], False, JobPlace(offset, number, True)))
            end = number
        elif end and number - end <= _FURTHER and _LOADS.search(head):
            named.append(_JobWord(b"", True, JobPlace(offset, number, True)))
            end = 0
    jobs = [job for job, _ in groupby(each.job for each in named if each.job)]
    if len(set(jobs)) != len(jobs):
        return ()
    return [each.place for before, each in pairwise(named) if each.begins and each.job != before.job]
