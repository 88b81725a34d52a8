"""Calls of a Ray head over HTTP, by the standard library alone. Importing Ray would cost 382 MB.

The token goes to the head's own address only: no redirect is followed.
"""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

JOB_METADATA = "midwatch_job"
"""The metadata by which a submission of midwatch names its job."""

SIDECAR_METADATA = "midwatch_sidecar"
"""The metadata of a submission whose entrypoint ships its own lines."""

GPUS_METADATA = "midwatch_gpus"
"""The metadata that says how many GPUs the entrypoint itself holds. The API shows them nowhere else."""

LIVE = ("PENDING", "RUNNING")
"""The statuses of a job that has not ended."""

LARGEST = 64 * 1024 * 1024
"""Bytes of one answer. A longer one is cut, and then no JSON."""


@dataclass(frozen=True, slots=True)
class RayHead:
    """Where a head's Jobs API is, by the settings, and the token that opens it; "" for none."""

    address: str
    token: str = ""

    def __repr__(self) -> str:
        return f"RayHead({self.address!r})"


@dataclass(frozen=True, slots=True)
class HeadAnswer:
    """What came back. `status` 0: no answer, `error` says why, and the call may have taken effect.

    `unsent`: the head was never reached, so the call certainly had no effect.
    """

    status: int
    body: bytes = b""
    error: str = ""
    unsent: bool = False

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The head's own words, or why there are none; the last line of a traceback."""
        words = self.error or self.body.decode(errors="replace").strip()
        return words.splitlines()[-1][:500] if words else f"status {self.status}"


def call(head: RayHead, method: str, path: str, body: bytes | None = None, *, timeout: float) -> HeadAnswer:
    """One call. Never raises for a head that is away: the answer says so."""
    connection = connect(head, timeout)
    try:
        connection.connect()
    except OSError as error:
        return HeadAnswer(0, error=f"{type(error).__name__}: {error}", unsent=True)
    try:
        connection.request(method, base_path(head) + path, body, headers(head, body))
        answer = connection.getresponse()
        return HeadAnswer(answer.status, answer.read(LARGEST))
    except (OSError, http.client.HTTPException) as error:
        return HeadAnswer(0, error=f"{type(error).__name__}: {error}")
    finally:
        connection.close()


def connect(head: RayHead, timeout: float) -> http.client.HTTPConnection:
    """A connection that is not open yet."""
    parts = urlsplit(head.address)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=timeout)


def base_path(head: RayHead) -> str:
    """The path of the address: a gateway may keep the head below one."""
    return urlsplit(head.address).path.rstrip("/")


def headers(head: RayHead, body: bytes | None = None) -> dict[str, str]:
    """The headers of every call."""
    found = {"Accept": "application/json", "User-Agent": "midwatch"}
    if body is not None:
        found["Content-Type"] = "application/json" if body[:1] in (b"{", b"[") else "application/octet-stream"
    if head.token:
        found["Authorization"] = f"Bearer {head.token}"
    return found
