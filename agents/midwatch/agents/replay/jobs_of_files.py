"""Which log files of a directory belong to one job. Pure: it reads their names and nothing else.

Without a wish the files are one job, unless their names show several:

- Files that end in different job ids, such as SLURM's `NAME-JOBID.out` and `NAME-JOBID_TASK.err`.
- Sub-folders whose names end in different job ids, or begin with `job`, `run`, `exp` or `trial`.

Other sub-folders (`rank3`, `node-07`, `attempt_0`, a host) hold parts of one job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Literal, NamedTuple, get_args

from midwatch.agents.replay.log_files import LogFile

JobsBy = Literal["auto", "one", "folder", "file"]
WAYS: tuple[str, ...] = get_args(JobsBy)

# A date or a second since 1970 has as many digits as an id, but names a time.
_ID = r"(?!(?:19|20)\d{6}(?!\d))(?P<id>\d{4,9}(?:_\d{1,6})?)"
_SUFFIXES = r"(?:\.(?:out|err|log|txt|gz|bz2|zst))*"
_FILE = re.compile(rf"\A(?P<name>[A-Za-z].*?)(?:[-_.]|\.[oe]){_ID}{_SUFFIXES}\Z")
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
    folders = _grouped((_folder(root, file) or whole.name, file) for file in files)
    if by == "folder":
        return folders
    inner = {name for file in files if (name := _folder(root, file))}
    if len(inner) >= _LEAST and all(_FOLDER.match(name) for name in inner):
        return folders
    if not inner:
        ids = {file.path: _job_id(PurePath(file.path).name) for file in files}
        if len({known for known in ids.values() if known}) >= _LEAST:
            return _grouped((ids[file.path] or PurePath(file.path).name, file) for file in files)
    return [whole]


def _folder(root: str, file: LogFile) -> str:
    """The first folder below the root in which the file lies; "" for one in the root itself."""
    parts = PurePath(file.path).relative_to(root).parts
    return parts[0] if len(parts) > 1 else ""


def _job_id(name: str) -> str:
    found = _FILE.match(name)
    if found is None or _OF_PROCESSES.search(found["name"]):
        return ""
    return f"{found['name']}-{found['id']}"


def _grouped(named: Iterable[tuple[str, LogFile]]) -> list[JobFiles]:
    groups: dict[str, list[LogFile]] = {}
    for name, file in named:
        groups.setdefault(name, []).append(file)
    return [JobFiles(name, tuple(groups[name])) for name in sorted(groups)]
