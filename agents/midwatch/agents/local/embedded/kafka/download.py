"""Downloads the locked jars from a Maven repository into the user's cache, and checks each before its use."""

from __future__ import annotations

import contextlib
import hashlib
import os
import ssl
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from midwatch.agents.local.embedded.errors import (
    EmbeddedStackError,
    ExtraMissing,
    JarMissing,
    NotWritable,
    RepositoryUnreachable,
    WrongChecksum,
)
from midwatch.agents.local.embedded.kafka.jars import Jar, matches
from midwatch.agents.local.embedded.kafka.progress import DownloadProgress, ProgressListener, shown

if TYPE_CHECKING:
    import httpx

CONNECTIONS = 6
RETRY_PAUSES = (0.3, 0.9, 2.7)
"""Seconds before each further try. They are short: without a network the error must come in seconds."""

_WAYS_OUT = (
    "name a mirror with --maven-mirror URL (or MIDWATCH_MAVEN_REPOSITORY), "
    "or copy the jars from another machine and name their directory with --jars DIR"
)
_CHUNK = 1 << 16


def repository_address(mirror: str | None, environment: Mapping[str, str]) -> str:
    """The base of the Maven repository: the mirror, else the environment variable, else the public one."""
    chosen = mirror or environment.get("MIDWATCH_MAVEN_REPOSITORY")
    if not chosen:
        try:
            from jgo.constants import MAVEN_CENTRAL_URL
        except ImportError as error:
            raise _extra_missing("jgo") from error
        chosen = str(MAVEN_CENTRAL_URL)
    return chosen.rstrip("/")


def cached_jars(
    jars: Iterable[Jar],
    cache: Path,
    *,
    mirror: str | None = None,
    environment: Mapping[str, str] = os.environ,
    progress: ProgressListener | None = None,
    pauses: tuple[float, ...] = RETRY_PAUSES,
) -> tuple[Path, ...]:
    """The class path from the cache. Downloads missing and damaged jars first.

    It hashes every file on every call, so nothing runs that the lock does not name. It uses the network only
    if a jar is missing or damaged. Two processes may fill one cache at the same time.
    """
    jars = tuple(jars)
    directory = cache / "jars"
    missing = [jar for jar in jars if not matches(jar, directory / jar.file_name)]
    if missing:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _not_writable(directory, error) from error
        _download(missing, directory, repository_address(mirror, environment), progress, pauses)
    return tuple(directory / jar.file_name for jar in jars)


def _download(
    jars: list[Jar],
    directory: Path,
    address: str,
    progress: ProgressListener | None,
    pauses: tuple[float, ...],
) -> None:
    try:
        import httpx
    except ImportError as error:
        raise _extra_missing("httpx") from error
    try:
        base = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise _bad_address(address) from error
    if base.scheme not in ("http", "https") or not base.host:
        raise _bad_address(address)
    what, total = f"{len(jars)} Kafka jars from {base.host}", sum(jar.size for jar in jars)
    with contextlib.ExitStack() as open_things:
        # One client for all jars: its pooled connections save a name look-up and a handshake for each.
        client = open_things.enter_context(
            httpx.Client(
                timeout=httpx.Timeout(30, connect=5),
                verify=ssl.create_default_context(),
                follow_redirects=True,
                limits=httpx.Limits(max_connections=CONNECTIONS),
            )
        )
        listener = progress or open_things.enter_context(shown(what, total))
        fetch = _Fetch(client, base, directory, pauses, _Meter(what, total, listener))
        _fetch_all(sorted(jars, key=lambda jar: -jar.size), fetch)


def _fetch_all(jars: list[Jar], fetch: _Fetch) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        futures = [pool.submit(fetch, jar) for jar in jars]
        try:
            done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
        except BaseException:
            fetch.given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        for future in waiting:
            future.cancel()
        for future in done:
            future.result()


class _Meter:
    """Adds up the bytes of all threads."""

    def __init__(self, what: str, total: int, listener: ProgressListener) -> None:
        self._what = what
        self._total = total
        self._listener = listener
        self._done = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            self._listener(DownloadProgress(self._what, self._done, self._total))


class _Fetch:
    """Downloads one jar per call. The first final failure makes the others give up."""

    def __init__(
        self,
        client: httpx.Client,
        base: httpx.URL,
        directory: Path,
        pauses: tuple[float, ...],
        meter: _Meter,
    ) -> None:
        self._client = client
        self._base = base
        self._directory = directory
        self._pauses = pauses
        self._meter = meter
        self.given_up = threading.Event()

    def __call__(self, jar: Jar) -> None:
        try:
            self._until_here(jar)
        except EmbeddedStackError:
            self.given_up.set()
            raise

    def _until_here(self, jar: Jar) -> None:
        import httpx

        trouble = ""
        for pause in (0.0, *self._pauses):
            if self.given_up.wait(pause):
                return
            try:
                self._once(jar)
            except httpx.HTTPStatusError as error:
                if not error.response.is_server_error:
                    raise self._refused(jar, error.response.status_code) from error
                trouble = f"it answers {error.response.status_code}"
            except httpx.TransportError as error:
                trouble = str(error) or type(error).__name__
            else:
                return
        raise RepositoryUnreachable(
            f"the Kafka jars are not in the cache and the Maven repository cannot be reached: {trouble}",
            where=self._shown_address(jar),
            remedy=_WAYS_OUT,
        )

    def _once(self, jar: Jar) -> None:
        part = self._directory / f".{jar.file_name}.{os.getpid()}.part"
        digest, size = hashlib.sha256(), 0
        try:
            with (
                self._client.stream("GET", self._address(jar)) as response,
                part.open("wb") as file,
            ):
                response.raise_for_status()
                for chunk in response.iter_bytes(_CHUNK):
                    if self.given_up.is_set():
                        return
                    file.write(chunk)
                    digest.update(chunk)
                    size += len(chunk)
                    self._meter.add(len(chunk))
                    if size > jar.size:
                        break
            if (digest.hexdigest(), size) != (jar.sha256, jar.size):
                raise self._another(jar, digest.hexdigest(), size)
            part.replace(self._directory / jar.file_name)
        except OSError as error:
            raise _not_writable(self._directory, error) from error
        except Exception:
            self._meter.add(-size)
            raise
        finally:
            part.unlink(missing_ok=True)

    def _address(self, jar: Jar) -> httpx.URL:
        return self._base.copy_with(path=f"{self._base.path.rstrip('/')}/{jar.repository_path}")

    def _shown_address(self, jar: Jar) -> str:
        """The address without the user name and password that a mirror's address may hold."""
        return str(self._address(jar).copy_with(userinfo=b""))

    def _another(self, jar: Jar, sha256: str, size: int) -> WrongChecksum:
        got = f"more than {jar.size} bytes" if size > jar.size else f"{size} bytes, sha256 {sha256}"
        return WrongChecksum(
            f"the repository served another {jar.coordinates}: the lock says {jar.size} bytes, "
            f"sha256 {jar.sha256}; got {got}",
            where=self._shown_address(jar),
            remedy=f"check for a proxy's error page or a changed mirror; else {_WAYS_OUT}. Nothing was kept",
        )

    def _refused(self, jar: Jar, status: int) -> JarMissing:
        return JarMissing(
            f"the repository does not serve {jar.coordinates}: it answers {status}",
            where=self._shown_address(jar),
            remedy=f"check that the address is the base of a Maven repository; {_WAYS_OUT}",
        )


def _bad_address(address: str) -> RepositoryUnreachable:
    return RepositoryUnreachable(
        "the address of the Maven repository must begin with http:// or https:// and name a host",
        where=address.rpartition("@")[2],
        remedy=_WAYS_OUT,
    )


def _extra_missing(package: str) -> ExtraMissing:
    return ExtraMissing(
        f"the Kafka jars are not in the cache, and {package}, which downloads them, is not installed",
        remedy="install midwatch[embedded], or give a directory with the jars: --jars DIR",
    )


def _not_writable(directory: Path, error: OSError) -> NotWritable:
    return NotWritable(
        f"the cache cannot be written: {error.strerror}",
        where=str(directory),
        remedy="free some room there, or choose another cache with MIDWATCH_CACHE",
    )
