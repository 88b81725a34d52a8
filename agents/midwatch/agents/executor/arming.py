"""Marks in the state directory that say whether the executor may act. It reads them before every act.

The file `disarmed` stops every act of this installation until somebody removes it. The file
`arming/<hash of the job>` holds what a person last set for one job. Without such a file the signed spec
decides: `midwatch run --act` arms a job. A mark that the executor cannot read counts as disarmed.
Marks need neither Kafka nor Redis.
"""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from pathlib import Path

import msgspec

from midwatch.streams.host.atomic_file import replace_file
from midwatch.streams.records.codec import content_hash

_ALL = "disarmed"
_JOBS = "arming"


@dataclass(frozen=True, slots=True)
class Mark:
    """Who armed or disarmed what, and when. `at`: seconds since 1970, this host's clock."""

    job: str  # "" for all
    armed: bool
    who: str
    at: float


@dataclass(frozen=True, slots=True)
class Arming:
    """Whether to act for a job, and why. `by_person`: a person set it, before or after the job's start."""

    armed: bool
    reason: str
    by_person: bool = False

    @property
    def word(self) -> str:
        """One word for a list: `armed`, `disarmed` (by a person), or `observed` (nobody armed it)."""
        return "armed" if self.armed else "disarmed" if self.by_person else "observed"


def arming(state_directory: Path, job: str, *, armed_by_spec: bool) -> Arming:
    """Whether the executor may act for the job now, and why. Never raises: an unreadable mark disarms."""
    marked = marked_arming(state_directory, job)
    if marked is not None:
        return marked
    if armed_by_spec:
        return Arming(True, "armed when it was started")
    return Arming(False, "the job is observed only: nobody armed it")


def marked_arming(state_directory: Path, job: str) -> Arming | None:
    """The arming of a job by this host's marks; None without a mark for it. Never raises, as `arming`."""
    try:
        everything = disarmed_everything(state_directory)
        job_mark = _read(_path(state_directory, job))
    except (OSError, msgspec.DecodeError) as error:
        return Arming(False, f"the arming marks in {state_directory} cannot be read: {error}")
    if everything is not None:
        return Arming(False, f"everything was disarmed by {everything.who}", by_person=True)
    if job_mark is not None:
        return arming_by_person(job_mark.who, armed=job_mark.armed)
    return None


def arming_by_person(who: str, *, armed: bool) -> Arming:
    """The arming of a job that a person armed or disarmed."""
    return Arming(armed, f"{'armed' if armed else 'disarmed'} by {who}", by_person=True)


def asked_by_person(state_directory: Path, who: str) -> Arming:
    """Whether the executor may do what a person asked for. Only `disarm --all` forbids it. Never raises.

    An armed job lets midwatch act by itself. A person who asks for one act needs no such leave.
    """
    try:
        everything = disarmed_everything(state_directory)
    except (OSError, msgspec.DecodeError) as error:
        return Arming(False, f"the arming marks in {state_directory} cannot be read: {error}")
    if everything is not None:
        return Arming(False, f"everything was disarmed by {everything.who}", by_person=True)
    return Arming(True, f"{who} asked for it", by_person=True)


def disarmed_everything(state_directory: Path) -> Mark | None:
    """The mark that disarms everything; None if there is none.

    Raises:
        OSError: the mark cannot be read.
        msgspec.DecodeError: the mark is broken.
    """
    return _read(state_directory / _ALL)


def mark_job(state_directory: Path, job: str, *, armed: bool, at: float) -> Mark:
    """Writes the mark of one job, which outweighs its spec."""
    mark = Mark(job, armed, getpass.getuser(), at)
    _write(_path(state_directory, job), mark)
    return mark


def disarm_all(state_directory: Path, *, at: float) -> Mark:
    """Stops every act of this executor from now on, whatever is armed."""
    mark = Mark("", False, getpass.getuser(), at)
    _write(state_directory / _ALL, mark)
    return mark


def lift_disarm_all(state_directory: Path) -> bool:
    """Removes the mark that disarms everything, so each job's mark counts again. False if there was none."""
    path = state_directory / _ALL
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed


def everything_disarmed(state_directory: Path) -> bool:
    """Whether the mark that disarms everything is there, readable or not."""
    return (state_directory / _ALL).exists()


def _path(state_directory: Path, job: str) -> Path:
    return state_directory / _JOBS / content_hash({"job": job})[:32]


def _read(path: Path) -> Mark | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Mark)
    except FileNotFoundError:
        return None


def _write(path: Path, mark: Mark) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(mark))
