"""A real Prometheus and a real Alertmanager, from Debian's packages, for one test."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from house.parts import require
from midwatch.agents.grafana import services
from midwatch.agents.grafana.alerts import ALERTS
from processes import wait_for
from slurm_lab.packages import install, search_path

PROGRAMS = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
}


def program(name: str) -> str:
    """The path of a program, installed if it was not there; else the test is skipped, or fails in CI."""
    problem = install(PROGRAMS)
    require("Prometheus and Alertmanager", not problem, problem)
    found = shutil.which(name, path=search_path())
    assert found, name
    return found


@dataclass
class Server:
    """One running server. `url` answers as soon as `ready` has returned."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def get(self, path: str, **parameters: str) -> Any:
        """The JSON that it answers; a refusal fails the test with its words."""
        status, body = self._ask(f"{path}?{urlencode(parameters)}")
        assert status == 200, f"{path} {parameters}: {body.decode()}"
        return json.loads(body)

    def ready(self, path: str) -> None:
        wait_for(lambda: self._answers(path), f"{self.url} is ready", seen=self.log.read_text)

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _answers(self, path: str) -> bool:
        try:
            return self._ask(path)[0] == 200
        except OSError:
            return False

    def _ask(self, path: str) -> tuple[int, bytes]:
        asked = HTTPConnection(self.url.removeprefix("http://"), timeout=20)
        try:
            asked.request("GET", path)
            answer = asked.getresponse()
            return answer.status, answer.read()
        finally:
            asked.close()


@dataclass
class Series:
    """What a query gave over the whole test: labels and values, one pair a series."""

    found: list[tuple[dict[str, str], list[float]]]

    def __bool__(self) -> bool:
        return bool(self.found)


def begin(name: str, directory: Path, port: int, argv: Sequence[str]) -> Server:
    """Start a server that listens on a port of the loopback."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{name}.log"
    with log.open("ab") as out:
        process = subprocess.Popen(argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    return Server(f"http://127.0.0.1:{port}", process, log)


def start_prometheus(directory: Path, port: int, targets: Mapping[str, str], alertmanager: str) -> Server:
    """Our own files, but for the addresses, a scrape each second, and alerts that do not wait."""
    directory.mkdir(parents=True, exist_ok=True)
    at_once = tuple(replace(alert, hold="0s") for alert in ALERTS)
    (directory / "alerts.yml").write_text(services.text(services.alert_rules(at_once)))
    config = services.scrapes(targets, "alerts.yml", alertmanager, every="1s")
    (directory / "prometheus.yml").write_text(services.text(config))
    made = begin(
        "prometheus",
        directory,
        port,
        [
            program("prometheus"),
            f"--config.file={directory}/prometheus.yml",
            f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
    )
    made.ready("/-/ready")
    return made


def start_alertmanager(directory: Path, port: int, sink: str, dead_man_sink: str) -> Server:
    """Our own file, but for the addresses, and groups that wait for a second only."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "alertmanager.yml").write_text(
        services.text(services.alertmanager(sink, dead_man_sink, wait="1s", between="1s"))
    )
    made = begin(
        "alertmanager",
        directory,
        port,
        [
            program("prometheus-alertmanager"),
            f"--config.file={directory}/alertmanager.yml",
            f"--storage.path={directory}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ],
    )
    made.ready("/-/ready")
    return made


def query(server: Server, expression: str) -> Series:
    """The expression at this moment."""
    answer = server.get("/api/v1/query", query=expression)
    return Series([(each["metric"], [float(each["value"][1])]) for each in answer["data"]["result"]])


def query_since(server: Server, expression: str, began: float) -> Series:
    """The expression at each second since `began` (Unix time)."""
    end = f"{time.time() + 1:.0f}"  # a sample of this very second counts
    answer = server.get("/api/v1/query_range", query=expression, start=f"{began:.0f}", end=end, step="1")
    return Series(
        [(each["metric"], [float(value) for _, value in each["values"]]) for each in answer["data"]["result"]]
    )
