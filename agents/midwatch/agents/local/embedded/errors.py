"""Errors of the embedded Kafka and Redis.

`exit_code` is that of the command line: 3 if a setting or directory that the user chose is wrong, 4 if a
server or the repository of jars cannot be reached.
"""

from __future__ import annotations

from midwatch.streams.errors import MidwatchError


class EmbeddedStackError(MidwatchError):
    """Base of all errors of the embedded stack."""

    exit_code = 4


class PortTaken(EmbeddedStackError):
    """A requested port cannot be used: another program listens on it, or no such port exists."""

    exit_code = 3


class NotWritable(EmbeddedStackError):
    """The state directory or the cache cannot be written, or belongs to another user."""

    exit_code = 3


class StateDirectoryInUse(EmbeddedStackError):
    """Another process runs its stack in this state directory."""


class StateDirectoryDamaged(EmbeddedStackError):
    """The state directory holds data that cannot be opened. Formatting would destroy it."""

    exit_code = 3


class StateDirectoryNewer(EmbeddedStackError):
    """A newer Kafka, Redis or midwatch wrote the state directory."""

    exit_code = 3


class DiskFull(EmbeddedStackError):
    """The disk has too little room for the files of Kafka or Redis."""


class NoJava(EmbeddedStackError):
    """No Java of the needed version was found. The message lists the rejected ones."""

    exit_code = 3


class NoRedisServer(EmbeddedStackError):
    """No usable redis-server or valkey-server was found."""

    exit_code = 3


class NoRay(EmbeddedStackError):
    """No program `ray` was found."""

    exit_code = 3


class RepositoryUnreachable(EmbeddedStackError):
    """Jars must be downloaded and the Maven repository does not answer."""


class JarMissing(EmbeddedStackError):
    """A jar that the lock file names is neither in the given directory nor in the repository."""

    exit_code = 3


class WrongChecksum(EmbeddedStackError):
    """A jar differs from the lock file. It is never put on the class path."""

    exit_code = 3


class ExtraMissing(EmbeddedStackError):
    """A Python package of the extra `embedded` is not installed."""

    exit_code = 3


class ServerFailed(EmbeddedStackError):
    """Kafka or Redis ended by itself; its log gives the reason."""


class ServerSilent(EmbeddedStackError):
    """Kafka or Redis runs, but did not answer in time."""
