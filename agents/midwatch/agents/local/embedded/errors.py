"""What can go wrong between a machine with Python and a running Kafka and Redis.

`exit_code` follows the command line's: 3 where a setting or a directory that the user chose is wrong,
4 where a server or the repository of jars cannot be reached.
"""

from __future__ import annotations

from midwatch.streams.errors import MidwatchError


class EmbeddedStackError(MidwatchError):
    """Base of all errors of the embedded stack."""

    exit_code = 4


class PortTaken(EmbeddedStackError):
    """A port that was asked for cannot be had: another program listens on it, or there is no such port."""

    exit_code = 3


class NotWritable(EmbeddedStackError):
    """The state directory or the cache cannot be written, or belongs to another user."""

    exit_code = 3


class StateDirectoryInUse(EmbeddedStackError):
    """Another process runs its stack in this state directory."""


class StateDirectoryDamaged(EmbeddedStackError):
    """The state directory holds data that cannot be opened, and that must not be formatted over."""

    exit_code = 3


class StateDirectoryNewer(EmbeddedStackError):
    """The state directory was written by a newer Kafka, Redis or midwatch than this one."""

    exit_code = 3


class DiskFull(EmbeddedStackError):
    """There is too little room for Kafka's or Redis's files."""


class NoJava(EmbeddedStackError):
    """No Java of the needed version was found; the message names those that were passed over."""

    exit_code = 3


class NoRedisServer(EmbeddedStackError):
    """No usable redis-server or valkey-server was found."""

    exit_code = 3


class RepositoryUnreachable(EmbeddedStackError):
    """Jars must be downloaded and the Maven repository does not answer."""


class JarMissing(EmbeddedStackError):
    """A jar of the lock is neither in the given directory nor in the repository."""

    exit_code = 3


class WrongChecksum(EmbeddedStackError):
    """A jar is not the one of the lock. It is never put on the class path."""

    exit_code = 3


class ExtraMissing(EmbeddedStackError):
    """A Python package of the extra `embedded` is needed and not installed."""

    exit_code = 3


class ServerFailed(EmbeddedStackError):
    """Kafka or Redis ended by itself, for a reason that its log gives."""


class ServerSilent(EmbeddedStackError):
    """Kafka or Redis runs but gave no answer in time."""
