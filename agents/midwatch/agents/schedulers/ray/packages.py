"""The packages of a job's code: made once, kept beside the submission, and given to a head that lacks them.

A head that was restarted has lost them. Ray's own client would then read the directory again, which may have
changed since the job was started.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from midwatch.agents.schedulers.base import Hint
from midwatch.agents.schedulers.ray.zipping import zipped
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.host.atomic_file import create_if_absent
from midwatch.streams.services.ray_jobs import HeadAnswer

UPLOAD_S = 300.0
_LOOK_S = 10.0
_URI = re.compile(r"gcs://_ray_pkg_([0-9a-f]{64})\.zip")
_OK, _ABSENT = 200, 404

Call = Callable[[str, str, bytes | None, float], HeadAnswer]


@dataclass(frozen=True, slots=True)
class KeptPackage:
    """A package that this host keeps, under the URI by which a runtime environment names it."""

    folder: Path
    uri: str

    def content(self) -> bytes:
        """Raises ConfigurationError if the package is gone or was changed."""
        named = _URI.fullmatch(self.uri)
        path = self.folder / f"{named[1] if named else 'none'}.zip"
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ConfigurationError(
                f"the job's package cannot be read: {error.strerror}",
                where=str(path),
                remedy="start the job with `midwatch run` again, which makes it anew",
            ) from error
        if hashlib.sha256(content).hexdigest() != path.stem:
            raise ConfigurationError("the job's package was changed", where=str(path))
        return content


def restore(call: Call, package: KeptPackage) -> Hint:
    """Uploads the package if the head does not hold it. Raises ConfigurationError if it is gone here."""
    path = f"/api/packages/gcs/{package.uri.removeprefix('gcs://')}"
    answer = call("GET", path, None, _LOOK_S)
    if answer.status == _OK:
        return Hint("done")
    if answer.status == _ABSENT:
        answer = call("PUT", path, package.content(), UPLOAD_S)
    if answer.status == _OK:
        return Hint("done")
    return Hint("unsent", f"the package could not be given to the head: {answer.text}")


def keep_package(folder: Path, directory: Path, excludes: Sequence[str] = (), *, inside: bool = False) -> str:
    """Packs a directory into `folder` and returns the URI. The same content makes the same package.

    It leaves out what `.gitignore` and `.rayignore` name, and `excludes`, as Ray's client does. `inside`: the
    directory itself stands in the package too, as Ray wants its Python modules.

    Raises:
        UsageError: the directory cannot be read, or is larger than Ray takes.
    """
    return keep_content(folder, zipped(directory, excludes, inside=inside))


def keep_content(folder: Path, content: bytes) -> str:
    """Keeps the bytes of a package and returns its URI."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    digest = hashlib.sha256(content).hexdigest()
    create_if_absent(folder / f"{digest}.zip", content)
    return f"gcs://_ray_pkg_{digest}.zip"
