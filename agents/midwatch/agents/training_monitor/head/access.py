"""The way to a Ray head: its address, or its pod by kubectl. It imports no Ray and no Kubernetes client."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from midwatch.agents.training_monitor.errors import AccessDenied, HeadUnreachable, JobNotFound, PodNotFound
from midwatch.streams.services import ray_jobs
from midwatch.streams.services.ray_jobs import HeadAnswer, RayHead

DEFAULT_NAMESPACE = "default"
LOOK_S = 30.0
JOBS = "/api/jobs/"
_OK, _ABSENT = 200, 404
_DENIED = (401, 403)
_HOST_PORT = re.compile(r"[\w.-]+:\d+")

_IN_POD = """
import json, os, sys, urllib.error, urllib.request
method, path, body = json.load(sys.stdin)
token = os.environ.get("RAY_AUTH_TOKEN", "")
for file in (os.environ.get("RAY_AUTH_TOKEN_PATH", ""), os.path.expanduser("~/.ray/auth_token")):
    if not token and file and os.path.exists(file):
        token = open(file).read().strip()
address = os.environ.get("RAY_API_SERVER_ADDRESS") or "http://127.0.0.1:8265"
headers = {"User-Agent": "midwatch", "Content-Type": "application/json"}
headers.update({"Authorization": "Bearer " + token} if token else {})
data = body.encode() if body is not None else None
request = urllib.request.Request(address.rstrip("/") + path, data, headers, method=method)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    answer = opener.open(request, timeout=25)
except urllib.error.HTTPError as error:
    answer = error
except Exception as error:
    print(json.dumps([0, str(error)]))
    sys.exit()
print(json.dumps([answer.status, answer.read().decode(errors="replace")]))
"""
"""Runs in the head's pod, which has Python because Ray is there: one call of the head, by its own address."""


class HeadAccess(Protocol):
    """One head. `call` never raises for a head that is away: the answer says so."""

    @property
    def name(self) -> str: ...

    def call(self, method: str, path: str, body: bytes | None = None) -> HeadAnswer:
        """One call of the head's HTTP interface. Raises AccessDenied and PodNotFound."""
        ...


class AddressedHead:
    """A head by the address of its dashboard. The token is that of Ray's own client, from its variables."""

    def __init__(self, address: str) -> None:
        self.name = address if "://" in address else f"http://{address}"
        self._head = RayHead(self.name, _token())

    def call(self, method: str, path: str, body: bytes | None = None) -> HeadAnswer:
        return _allowed(ray_jobs.call(self._head, method, path, body, timeout=LOOK_S), self.name)


class PodHead:
    """A head by its pod. `kubectl` must be on PATH and configured."""

    def __init__(self, pod: str, namespace: str) -> None:
        self.pod, self.namespace = pod, namespace
        self.name = f"{namespace}/{pod}"

    def call(self, method: str, path: str, body: bytes | None = None) -> HeadAnswer:
        call = json.dumps([method, path, body.decode() if body is not None else None])
        answer = self.execute(("python3", "-c", _IN_POD), call)
        if isinstance(answer, HeadAnswer):
            return answer
        try:
            status, text = json.loads(answer)
        except ValueError:
            return HeadAnswer(0, error=f"kubectl printed no answer: {answer[:200]!r}")
        found = HeadAnswer(status, text.encode()) if status else HeadAnswer(0, error=text, unsent=True)
        return _allowed(found, self.name)

    def execute(self, argv: Sequence[str], given: str = "") -> str | HeadAnswer:
        """What a command in the pod prints; a HeadAnswer of status 0 if it failed there.

        Raises:
            AccessDenied: Kubernetes refuses us.
            PodNotFound: there is no such pod.
            HeadUnreachable: there is no kubectl here.
        """
        command = ["kubectl", "exec", "-i", "-n", self.namespace, self.pod, "--", *argv]
        try:
            done = subprocess.run(
                command, input=given, capture_output=True, text=True, timeout=2 * LOOK_S, check=False
            )
        except FileNotFoundError as error:
            raise HeadUnreachable(
                "kubectl is not installed here",
                where=self.name,
                remedy="install and configure it, or give the head's address, such as http://head:8265",
            ) from error
        except subprocess.TimeoutExpired:
            return HeadAnswer(0, error=f"kubectl took longer than {2 * LOOK_S:.0f} s")
        if done.returncode == 0:
            return done.stdout
        words = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        if re.search(r"forbidden|unauthorized|must be logged in", done.stderr, re.IGNORECASE):
            raise AccessDenied.of(words, self.name)
        if re.search(r"(?:pods? .*|namespaces? .*)not found", done.stderr, re.IGNORECASE):
            raise PodNotFound(words, where=self.name, remedy="verify that the head pod's name is correct")
        return HeadAnswer(0, error=words)


def head_of(head_pod: str, namespace: str = DEFAULT_NAMESPACE) -> AddressedHead | PodHead:
    """The head that a caller names: an address, `pod`, or `namespace/pod`."""
    if "://" in head_pod or _HOST_PORT.fullmatch(head_pod):
        return AddressedHead(head_pod)
    before, slash, pod = head_pod.partition("/")
    return PodHead(pod, before) if slash else PodHead(head_pod, namespace)


def read_job(head: HeadAccess, job_id: str) -> dict[str, Any] | None:
    """What the head says of a job; None if it gives no usable answer now. Raises JobNotFound."""
    answer = head.call("GET", JOBS + quote(job_id, safe=""))
    if answer.status == _ABSENT:
        raise JobNotFound.of(job_id, head.name)
    found: dict[str, Any] | None = _read(answer, dict)
    return found


def read_jobs(head: HeadAccess) -> list[dict[str, Any]] | None:
    """All submissions that the head knows; None if it gives no usable answer now."""
    found = _read(head.call("GET", JOBS), list)
    return None if found is None else [job for job in found if job.get("submission_id")]


def read_log(head: HeadAccess, job_id: str) -> str | None:
    """What the job's driver has printed; None if that cannot be read now."""
    answer = head.call("GET", f"{JOBS}{quote(job_id, safe='')}/logs")
    if answer.status == _ABSENT:
        raise JobNotFound.of(job_id, head.name)
    found = _read(answer, dict)
    return None if found is None else str(found.get("logs") or "")


def _read(answer: HeadAnswer, kind: type) -> Any:
    try:
        found = answer.json() if answer.status == _OK else None
    except ValueError:
        return None
    return found if isinstance(found, kind) else None


def _allowed(answer: HeadAnswer, name: str) -> HeadAnswer:
    if answer.status in _DENIED:
        raise AccessDenied.of(answer.text, name)
    return answer


def _token() -> str:
    if token := os.environ.get("RAY_AUTH_TOKEN", ""):
        return token.strip()
    named = os.environ.get("RAY_AUTH_TOKEN_PATH", "")
    if not named and os.environ.get("RAY_AUTH_MODE") != "token":
        return ""
    try:
        return Path(named or "~/.ray/auth_token").expanduser().read_text().strip()
    except OSError:
        return ""
