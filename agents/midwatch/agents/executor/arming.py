"""May the executor act? Marks in the state directory, read before every act: no Kafka, no Redis.

`disarmed` stops every act of this installation until it is taken away. `arming/<hash of the job>` holds a
person's last word on one job. Without one, the signed spec decides: `midwatch run --act` armed it.
A mark that cannot be read counts as disarmed.
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
    """Who said it, when (seconds since 1970, this host's clock) and what."""

    job: str  # "" for all
    armed: bool
    who: str
    at: float


@dataclass(frozen=True, slots=True)
class Arming:
    """Whether to act for a job, and why. `by_person`: somebody said so, after the start or ahead of it."""

    armed: bool
    reason: str
    by_person: bool = False

    @property
    def word(self) -> str:
        """One word for a list: armed, disarmed by a person, or observed for want of an order to act."""
        return "armed" if self.armed else "disarmed" if self.by_person else "observed"


def arming(state_directory: Path, job: str, *, armed_by_spec: bool) -> Arming:
    """The present answer for a job. Never raises: what cannot be read is a no."""
    marked = marked_arming(state_directory, job)
    if marked is not None:
        return marked
    if armed_by_spec:
        return Arming(True, "armed when it was started")
    return Arming(False, "the job is observed only: nobody armed it")


def marked_arming(state_directory: Path, job: str) -> Arming | None:
    """What the marks of this host say of a job; None where none speaks of it. Never raises, as `arming`."""
    try:
        everything = disarmed_everything(state_directory)
        own = _read(_path(state_directory, job))
    except (OSError, msgspec.DecodeError) as error:
        return Arming(False, f"the arming marks in {state_directory} cannot be read: {error}")
    if everything is not None:
        return Arming(False, f"everything was disarmed by {everything.who}", by_person=True)
    if own is not None:
        return said_by(own.who, armed=own.armed)
    return None


def said_by(who: str, *, armed: bool) -> Arming:
    """What a person's word on one job comes to."""
    return Arming(armed, f"{'armed' if armed else 'disarmed'} by {who}", by_person=True)


def disarmed_everything(state_directory: Path) -> Mark | None:
    """The general mark, if it stands. Raises OSError or msgspec.DecodeError if it cannot be read."""
    return _read(state_directory / _ALL)


def mark_job(state_directory: Path, job: str, *, armed: bool, at: float) -> Mark:
    """A person's word on one job; it outweighs the spec's."""
    mark = Mark(job, armed, getpass.getuser(), at)
    _write(_path(state_directory, job), mark)
    return mark


def disarm_all(state_directory: Path, *, at: float) -> Mark:
    """No act of this executor from now on, whatever is armed."""
    mark = Mark("", False, getpass.getuser(), at)
    _write(state_directory / _ALL, mark)
    return mark


def lift_disarm_all(state_directory: Path) -> bool:
    """Takes the general mark away; each job is again as it was. False if there was none."""
    path = state_directory / _ALL
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed


def everything_disarmed(state_directory: Path) -> bool:
    """Whether the general mark stands."""
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
