"""The errors that midwatch raises on purpose. Each names the problem, its place and the remedy.

The command line exits with the error's `exit_code`: 2 for usage, 3 for configuration or rules, 4 for a
service that does not answer, 1 for everything else.
"""

from __future__ import annotations

from collections.abc import Callable


class MidwatchError(Exception):
    """Base of all errors that midwatch raises on purpose.

    `what` is one sentence. `where` is a file:line:column, a setting or an address. `remedy` is the reader's
    next step. They are separate fields so that `--json` can show each.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __reduce__(self) -> tuple[Callable[..., MidwatchError], tuple[object, ...]]:
        return _rebuilt, (type(self), self.what, self.where, self.remedy)

    @property
    def in_one_line(self) -> str:
        """The whole message without line breaks, for a record or a reason."""
        return "; ".join(line.strip() for line in str(self).splitlines())

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  {self.remedy}" if self.remedy else ""
        return f"{place}{self.what}{advice}"


def _rebuilt(kind: type[MidwatchError], what: str, where: str, remedy: str) -> MidwatchError:
    """The unpickled error. A subclass with more fields must define its own `__reduce__`."""
    error = kind.__new__(kind)
    MidwatchError.__init__(error, what, where=where, remedy=remedy)
    return error


class UsageError(MidwatchError):
    """The command line does not make sense."""

    exit_code = 2


class ConfigurationError(MidwatchError):
    """A setting or a user's file is wrong."""

    exit_code = 3


class ServiceUnreachable(MidwatchError):
    """Kafka, Redis or a scheduler does not answer, or lacks what midwatch needs there."""

    exit_code = 4


class MalformedRecord(MidwatchError):
    """Bytes that are no midwatch record. A worker must write them to the dead-letter topic, never skip them.

    `refusal` names the kind of refusal in dead letters and counters. Each subclass sets its own.
    """

    refusal = "malformed"


class MisdirectedRecord(MalformedRecord):
    """A record with another job's key, or in a wrong partition or topic."""

    refusal = "misdirected"


class UnsignedRecord(MalformedRecord):
    """A command or a spec that this installation's key did not sign. Nothing in it can be believed."""

    refusal = "unsigned"


class ForeignLine(MalformedRecord):
    """A JSON line of another shipper that the settings do not read, or that lacks a field they require."""

    refusal = "foreign"


class NewerRecord(MidwatchError):
    """A record of a newer major version or an unknown kind. Only a newer worker can read it."""

    refusal = "newer"
