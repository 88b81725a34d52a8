"""A job's environment, in a file that only its user can read. Shell: writes, checks and reads that file.

The environment may hold secrets. So no record and no log holds it, and the signed spec holds the path alone.
The file's name is the hash of its content, so the spec vouches for the content too. The content begins with a
random entry: nobody can guess a secret and prove the guess by the hash.
"""

from __future__ import annotations

import errno
import getpass
import hashlib
import os
import pwd
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.host.atomic_file import create_if_absent

FOLDER = "environments"
"""The folder of these files, in the state directory of whoever started the job."""

_NAME = re.compile(r"[0-9a-f]{64}\.env")
_LARGEST = 16 * 1024 * 1024  # bytes; Linux gives a process far less
_REMEDY = "start the job with `midwatch run` again, which stores its environment"


def keep_environment(state_directory: Path, variables: Mapping[str, str]) -> Path:
    """Writes the variables into a new file of mode 0600, and returns its absolute path."""
    folder = state_directory.resolve() / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = secrets.token_hex(16).encode() + b"\0" + entries(variables)
    path = folder / f"{hashlib.sha256(content).hexdigest()}.env"
    create_if_absent(path, content, mode=0o600)
    return path


def entries(variables: Mapping[str, str]) -> bytes:
    """The variables as `NAME=value`, each with a zero byte behind it."""
    return b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in variables.items())


def kept_environment(path: Path, user: str) -> dict[str, str]:
    """The variables of a file that `keep_environment` wrote for this user.

    Raises:
        ConfigurationError: the file is gone or was changed, is a link, or is not the user's alone.
    """
    content = _content(path, user)
    if hashlib.sha256(content).hexdigest() != path.name.removesuffix(".env"):
        raise _unusable(path, "was changed after it was signed")
    pairs = [entry.partition("=") for entry in os.fsdecode(content).split("\0")[1:]]
    return {name: value for name, equals, value in pairs if equals}


def forget_environments(state_directory: Path, named: Iterable[str], *, older_than: float) -> int:
    """Deletes the files of this host that no spec in `named` (paths) names; returns their number.

    A file that was written at `older_than` (seconds since 1970) or later stays: its spec may be on its way.
    """
    folder, kept = state_directory.resolve() / FOLDER, set(named)
    if not folder.is_dir():
        return 0
    gone = [
        file
        for file in folder.iterdir()
        if _NAME.fullmatch(file.name) and str(file) not in kept and file.lstat().st_mtime < older_than
    ]
    for file in gone:
        file.unlink(missing_ok=True)
    return len(gone)


def _content(path: Path, user: str) -> bytes:
    if not _NAME.fullmatch(path.name):
        raise _unusable(path, "has a name that is no hash")
    try:
        # Without blocking: a pipe of that name must not hold up the executor.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        why = "is a link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise _unusable(path, why) from error
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise _unusable(path, "is no plain file")
        if about.st_uid != _uid(user):
            raise _unusable(path, f"is not a file of {user}")
        if stat.S_IMODE(about.st_mode) & 0o077:
            raise _unusable(path, "can be read or written by others")
        return file.read(_LARGEST)


def _uid(user: str) -> int:
    """The user's number; our own for the user as whom we run, and -1 for one that this host does not know."""
    if user in ("", getpass.getuser()):
        return os.getuid()
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return -1


def _unusable(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(f"the job's environment {why}", where=str(path), remedy=_REMEDY)
