"""Which of a head's logs are read for the transport: a head keeps those of all jobs it ever ran."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from midwatch.agents.training_monitor import health
from midwatch.streams.services.ray_jobs import HeadAnswer

EFA = "h:1:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 4 nics)"
OLD = 200


class Head:
    """A stand-in for a head that has run many jobs; the newest one alone uses EFA."""

    name = "head"

    def __init__(self, nodes: int = 1) -> None:
        self.nodes, self.paths = nodes, list[str]()

    def call(self, method: str, path: str, body: bytes | None = None) -> HeadAnswer:
        assert (method, body) == ("GET", None)
        url = urlsplit(path)
        self.paths.append(url.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        return HeadAnswer(200, self._answer(url.path, query).encode())

    def _answer(self, path: str, query: dict[str, str]) -> str:
        ids = [f"old{number:03}" for number in range(OLD)]
        if path == "/nodes":
            return json.dumps(
                {"data": {"summary": [{"raylet": {"state": "ALIVE", "nodeId": "n"}}] * self.nodes}}
            )
        if path == "/api/jobs/":
            started = [{"submission_id": each, "start_time": number} for number, each in enumerate(ids)]
            return json.dumps([*started, {"submission_id": "zz", "start_time": OLD + 1}])
        if path == "/api/v0/logs/file":
            return EFA if query["filename"] == "job-driver-zz.log" else "step 1"
        kind = "job-driver" if query["glob"].startswith("job") else "worker"
        files = [f"{kind}-{each}.log" for each in (*ids, "zz")]
        return json.dumps({"data": {"result": {kind: files}}})


def test_the_newest_drivers_are_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "head_of", lambda *_: Head())
    found = health.check_efa_utilization("head")
    assert (found["efa_active"], found["evidence"]) == (True, EFA)


def test_the_jobs_are_asked_for_once_however_many_nodes_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    head = Head(nodes=3)
    monkeypatch.setattr(health, "head_of", lambda *_: head)
    health.check_efa_utilization("head")
    assert head.paths.count("/api/jobs/") == 1
