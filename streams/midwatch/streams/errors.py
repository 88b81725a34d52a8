"""The one tree of errors. Each says what went wrong, where, and what to do about it.

The command line turns an error's `exit_code` into the process's (2 usage, 3 configuration or rule,
4 a service that cannot be reached); everything else is 1.
"""

from __future__ import annotations

from collections.abc import Callable


class MidwatchError(Exception):
    """Base of all errors that midwatch raises on purpose.

    `what` is one sentence, `where` a file:line:column, a setting or an address, `remedy` the next step
    for the person who reads it. The three are kept apart so that `--json` can show them apart.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __reduce__(self) -> tuple[Callable[..., MidwatchError], tuple[object, ...]]:
        return _again, (type(self), self.what, self.where, self.remedy)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  {self.remedy}" if self.remedy else ""
        return f"{place}{self.what}{advice}"


def _again(kind: type[MidwatchError], what: str, where: str, remedy: str) -> MidwatchError:
    """The same error in another process: what it says. A kind that knows more says how it is pickled."""
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
    """Kafka, Redis or a scheduler does not answer, or lacks what was promised there."""

    exit_code = 4


class MalformedRecord(MidwatchError):
    """Bytes that are no record of ours: to be dead-lettered, never skipped in silence.

    `refusal` is the word by which dead letters and counters tell the kinds apart; subclasses set their own.
    """

    refusal = "malformed"


class MisdirectedRecord(MalformedRecord):
    """A record in a place where it does not belong: another job's key, another partition, another topic."""

    refusal = "misdirected"


class UnsignedRecord(MalformedRecord):
    """An order or a spec that this installation's key did not sign: nothing that it says can be believed."""

    refusal = "unsigned"


class ForeignLine(MalformedRecord):
    """A JSON line of another shipper that the settings do not read, or that lacks what they ask for."""

    refusal = "foreign"


class NewerRecord(MidwatchError):
    """A record of a newer major version or an unknown kind: this worker must be upgraded to read it."""

    refusal = "newer"
