"""Attempt folders: files that each start of a job writes to a folder of its own. The last start counts.

torchrun writes to `attempt_0`, `attempt_1` and so on. Scripts do alike: `restart_1`, `try2`, `start-3`, or
files such as `rank0.attempt1.log`. Folders of nodes and ranks number what runs at once. So do folders whose
files of one name print times that overlap.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.reading.printed_times import first_printed, last_printed

_WORDS = r"(?:attempt|restart|retry|try)[-_.]?"
_FOLDER = re.compile(rf"(?i)\A(?:(?:.*[-_.])?{_WORDS}|start[-_.]?)(?P<number>\d{{1,4}})\Z")
_FILE = re.compile(rf"(?i)(?<![a-z]){_WORDS}(?P<number>\d{{1,4}})(?![a-z\d])")
_AT_ONCE = 60.0
"""Seconds for which two starts may overlap: the clocks of their nodes differ."""


class _Numbered(NamedTuple):
    """A file of one attempt. `job`: the path up to the numbered part. `name`: the path but for the number."""

    job: str
    name: str
    number: int


def attempts_of(files: Sequence[LogFile]) -> list[list[LogFile]]:
    """The files of each attempt, the last one behind the others. A file of no attempt is with the last.

    Attempts within attempts are not parted. Raises OSError.
    """
    numbered = _numbered([file.path for file in files])
    jobs: dict[str, dict[int, list[LogFile]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        if file.path in numbered:
            jobs[numbered[file.path].job][numbered[file.path].number].append(file)
    earlier: dict[int, list[LogFile]] = defaultdict(list)
    for attempts in jobs.values():
        written = sorted(
            number for number, own in attempts.items() if any(each.head().strip() for each in own)
        )
        if all(_successive(attempts[one], attempts[other], numbered) for one, other in pairwise(written)):
            for number in written[:-1]:
                earlier[number] += attempts[number]
    past = {file.path for own in earlier.values() for file in own}
    return [
        *(earlier[number] for number in sorted(earlier)),
        [each for each in files if each.path not in past],
    ]


def _numbered(paths: Sequence[str]) -> dict[str, _Numbered]:
    """The files of attempts: at the outermost part of their paths where one job has several numbers."""
    found: dict[str, list[_Numbered]] = {path: _numbers_in(path) for path in paths}
    numbers: dict[str, set[int]] = defaultdict(set)
    for each in found.values():
        for at in each:
            numbers[at.job].add(at.number)
    several = {path: [at for at in each if len(numbers[at.job]) > 1] for path, each in found.items()}
    return {path: each[0] for path, each in several.items() if each}


def _numbers_in(path: str) -> list[_Numbered]:
    *folders, name = PurePath(path).parts
    found: list[_Numbered] = []
    for index, part in enumerate((*folders, name)):
        match = _FOLDER.match(part) if index < len(folders) else _FILE.search(part)
        if match is not None:
            masked = f"{part[: match.start('number')]}#{part[match.end('number') :]}"
            job = "/".join((*folders[:index], masked))
            below = (*folders[index + 1 :], name) if index < len(folders) else ()
            found.append(_Numbered(job, "/".join((job, *below)), int(match["number"])))
    return found


def _successive(
    before: Sequence[LogFile], after: Sequence[LogFile], numbered: Mapping[str, _Numbered]
) -> bool:
    """Whether one attempt begins behind the other, as far as files of the same name print times."""
    later = {numbered[file.path].name: file for file in after}
    known = False
    for file in before:
        if (other := later.get(numbered[file.path].name)) is None:
            continue
        ended, begun = last_printed(file), first_printed(other)
        if ended is not None and begun is not None:
            if begun >= ended - _AT_ONCE:
                return True
            known = True
    return not known
