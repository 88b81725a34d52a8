"""Which log files of a directory belong to one job. Pure: it reads their names and nothing else.

Without a wish the files are one job, unless their names show several:

- Files whose names hold different job ids, such as SLURM's `NAME-JOBID.out`, `JOBID.out`, `JOBID_TASK.err`,
  submitit's `JOBID_RANK_log.out`, `job_JOBID_node-0.log`, or `JOBID.NAME.out`.
- Sub-folders whose names end in different job ids, or begin with `job`, `run`, `exp` or `trial`.

Other sub-folders (`rank3`, `node-07`, `attempt_0`, a host) hold parts of one job. So are files that are
numbered by rank, such as `0.log` or `rank_0001.log`. An id has four digits or more. Where all files lie in
one folder further down, that folder counts as the directory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Literal, NamedTuple, get_args

from midwatch.agents.replay.reading.log_files import LogFile

JobsBy = Literal["auto", "one", "folder", "file"]
WAYS: tuple[str, ...] = get_args(JobsBy)

# A date or a second since 1970 has as many digits as an id, but names a time.
_NO_TIME = r"(?!(?:19|20)\d{6}(?!\d))(?!(?:19|20)\d\d[-_.][01]\d(?!\d))"
_ID = rf"{_NO_TIME}(?P<id>\d{{4,9}}(?:_\d{{1,6}})?)"
_FILE_ID = rf"{_NO_TIME}(?P<id>[1-9]\d{{3,8}}(?:_\d{{1,6}})?)"
_SUFFIXES = r"(?:[-_.](?:out|err|log|txt|stdout|stderr|gz|bz2|zst))*"
_FILE = re.compile(rf"\A(?P<name>[A-Za-z].*?)(?:[-_.]|\.[oe]){_ID}{_SUFFIXES}\Z")
_SUBMITIT = re.compile(rf"\A(?P<name>(?:submitit_)?){_FILE_ID}_\d{{1,6}}_log{_SUFFIXES}\Z")
_MARKED = re.compile(rf"(?i)\A(?P<name>(?:.*?[-_.])??(?:slurm|job(?:[-_.]?id)?))[-_.]?{_FILE_ID}[-_.].*\Z")
_BARE = re.compile(rf"\A(?!(?:19|20)\d\d(?!\d)){_FILE_ID}{_SUFFIXES}\Z")
_LEADING = re.compile(
    rf"\A(?!(?:19|20)\d\d(?!\d)){_FILE_ID}[-_.](?P<name>[A-Za-z].*?)[-_.](?:out|err|log|txt|stdout|stderr){_SUFFIXES}\Z"
)
_ROUND = 100  # a number of steps often is a multiple of it
_OF_NO_JOB = (
    "",
    "job",
    "jobid",
    "slurm",
    "submitit",
    "out",
    "err",
    "log",
    "stdout",
    "stderr",
    "output",
    "error",
)
_DATED = re.compile(r"(?:19|20)\d{6}")
_SURE = 6
"""Digits of an id that is one job whatever stands in front of it. Fewer may be a seed."""
# These write a file for each process and name it by the process's id.
_OF_PROCESSES = re.compile(r"(?i)(?:rank|node|host|worker|driver|gpu|pid|proc|raylet|attempt|epoch|step)")
_FOLDER = re.compile(rf"\A(?:(?:job|run|exp|trial)[-_.a-z]*\d.*|(?:.*[-_.])?{_ID})\Z", re.IGNORECASE)
_LEAST = 2


class JobFiles(NamedTuple):
    """The files of one job. `name` is the part of their paths that they share."""

    name: str
    files: tuple[LogFile, ...]


def jobs_of(root: str, files: Sequence[LogFile], by: str = "auto") -> list[JobFiles]:
    """The jobs whose logs lie in the directory `root`, in the order of their names. One of `WAYS` decides."""
    whole = JobFiles(Path(root).resolve().name or "log", tuple(files))
    if by == "one":
        return [whole]
    if by == "file":
        return [JobFiles(str(PurePath(file.path).relative_to(root)), (file,)) for file in files]
    if by == "auto":
        root = _with_all(root, files)
    folders = _grouped((_folder(root, file) or whole.name, file) for file in files)
    if by == "folder":
        return folders
    inner = {name for file in files if (name := _folder(root, file))}
    if len(inner) >= _LEAST and all(_FOLDER.match(name) for name in inner):
        return folders
    if not inner:
        ids = _job_ids([PurePath(file.path).name for file in files])
        if len({known.key for known in ids.values()}) >= _LEAST:
            return _of_ids(files, ids)
    return [whole]


def _with_all(root: str, files: Sequence[LogFile]) -> str:
    """The deepest folder that holds all files: `logs`, say, where the job's own folder is given."""
    parents = [PurePath(file.path).parent for file in files]
    return os.path.commonpath(parents) if parents else root


def _folder(root: str, file: LogFile) -> str:
    """The first folder below the root in which the file lies; "" for one in the root itself."""
    parts = PurePath(file.path).relative_to(root).parts
    return parts[0] if len(parts) > 1 else ""


class _JobId(NamedTuple):
    """The id that a file's name holds, with what stands in front of it."""

    name: str
    number: str

    @property
    def key(self) -> str:
        """What the files of one job share: the id, and the name unless the id alone is surely a job's."""
        base = self.number.partition("_")[0]
        sure = len(base) >= _SURE and int(base) % _ROUND and not _DATED.search(self.name)
        return self.number if sure or self.name.lower() in _OF_NO_JOB else self.shown

    @property
    def shown(self) -> str:
        return f"{self.name}-{self.number}" if self.name else self.number


def _job_ids(names: Iterable[str]) -> dict[str, _JobId]:
    """The ids in those of these names that hold one."""
    ids: dict[str, _JobId] = {}
    bare: dict[str, _JobId] = {}
    for name in names:
        last = _FILE.match(name)
        if last is not None and _OF_PROCESSES.search(last["name"]):
            last = None
        if known := _SUBMITIT.match(name) or last or _MARKED.match(name):
            ids[name] = _JobId(known["name"].removesuffix("_"), known["id"])
        elif (first := _LEADING.match(name)) and not _OF_PROCESSES.search(first["name"]):
            bare[name] = _JobId(first["name"], first["id"])
        elif name[:1].isdigit() and name.partition(".")[0].partition("_")[0].isdecimal():
            found = _BARE.match(name)
            bare[name] = _JobId("", found["id"] if found else "")
    return ids | (bare if _are_ids([each.number for each in bare.values()]) else {})


def _are_ids(numbers: Sequence[str]) -> bool:
    """Whether numbers at the beginning of names are job ids: all as long, and not all round as steps are."""
    bases = {number.partition("_")[0] for number in numbers}
    return "" not in bases and len({*map(len, bases)}) == 1 and any(int(base) % _ROUND for base in bases)


def _of_ids(files: Sequence[LogFile], ids: Mapping[str, _JobId]) -> list[JobFiles]:
    """The jobs by their ids, each named after its first file. A file without an id is a job by itself."""
    shown: dict[str, str] = {}
    for name in sorted(ids):
        shown.setdefault(ids[name].key, ids[name].shown)
    names = [PurePath(file.path).name for file in files]
    return _grouped(
        (shown[ids[name].key] if name in ids else name, file) for name, file in zip(names, files, strict=True)
    )


def _grouped(named: Iterable[tuple[str, LogFile]]) -> list[JobFiles]:
    groups: dict[str, list[LogFile]] = {}
    for name, file in named:
        groups.setdefault(name, []).append(file)
    return [JobFiles(name, tuple(groups[name])) for name in sorted(groups)]
