"""docker-compose.yml as processes of this machine: each service's command, environment and order of start.

Kafka and Redis are the session's. What a container would have of its own is translated: the addresses, the
volumes, and the image's entry point and variables, which the Dockerfile names.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from house.tree import ROOT
from processes import wait_for

Service = dict[str, Any]
SERVICES_OF_OTHERS = (
    "kafka", "redis", "collector", "prometheus", "alertmanager", "loki", "tempo", "grafana",
)  # fmt: skip


def services() -> dict[str, Service]:
    """The services by name, with their anchors resolved."""
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    found: dict[str, Service] = document["services"]
    return found


def stage_of(target: str) -> str:
    """The lines of one stage of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    found = re.search(rf"^FROM \S+ AS {target}\n(.*?)(?=^FROM |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, target
    return found[1]


def image_environment(target: str) -> dict[str, str]:
    """The variables of an image, and of the stage that it begins with."""
    lines = re.findall(r"^ENV (.*)$", stage_of("python") + stage_of(target), re.MULTILINE)
    return dict(word.split("=", 1) for line in lines for word in line.split())


def entry_point(target: str) -> list[str]:
    found = re.search(r"^ENTRYPOINT (.*)$", stage_of(target), re.MULTILINE)
    assert found
    words: list[str] = json.loads(found[1])
    return words


def decided_after_s(attempt: Mapping[str, Any]) -> float:
    """Seconds from the end of an attempt's command to the decision, by the records of `why --json`.

    The end is known by the second, rounded down. How long `why` itself took to answer does not count.
    """
    moment = attempt["incident"]["scheduler"]["reason"].rpartition(" ")[2]
    ended = datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    return float(attempt["decisions"][0]["at_ms"]) / 1000 - ended


@dataclass
class Compose:
    """The services as processes below `directory`. `variables` name the session's Kafka and Redis.

    `pythons`: the interpreters of built images, by their stage; else the services run from this tree.
    """

    directory: Path
    variables: Mapping[str, str]
    pythons: Mapping[str, Path] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def up(self) -> None:
        """Starts all services but those of others, each when its dependencies are as it demands."""
        left = {name: service for name, service in services().items() if name not in SERVICES_OF_OTHERS}
        while left:
            able = [n for n, s in left.items() if not (set(s.get("depends_on", {})) & left.keys())]
            assert able, f"the services wait for each other: {', '.join(left)}"
            for name in able:
                self.start(name)
                del left[name]

    def start(self, name: str, other_words: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Starts one service after its dependencies. `other_words` replace words of its command."""
        service = services()[name]
        command = [(other_words or {}).get(word, word) for word in service.get("command", [])]
        for other, demand in service.get("depends_on", {}).items():
            self._await(other, demand["condition"])
        with (self.directory / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                self.argv(name, command, entry=True),
                cwd=self.directory,
                env=self.environment(name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self.processes[name]

    def argv(self, name: str, command: list[str], *, entry: bool = False) -> list[str]:
        """The command line; `entry`: behind the service's or the image's entry point."""
        service = services()[name]
        words = list(command)
        if entry:
            words = [*service.get("entrypoint", entry_point(service["build"]["target"])), *words]
        python = str(self.pythons.get(service["build"]["target"], sys.executable))
        ours = {"midwatch": [python, "-P", "-m", "midwatch"], "python": [python]}
        return [part for word in words for part in ours.get(word, [self.path(name, word)])]

    def environment(self, name: str) -> dict[str, str]:
        """As a container has it: the image's and the service's variables, and few of this machine's."""
        service = services()[name]
        names = ("PATH", "HOME", "TMPDIR", *([] if self.pythons else ["PYTHONPATH"]))
        kept = {name: os.environ[name] for name in names if name in os.environ}
        named = image_environment(service["build"]["target"]) | service.get("environment", {})
        own = {n: self.path(name, str(value)) for n, value in named.items() if n.startswith("MIDWATCH_")}
        addresses = {n for n in own if n.endswith(("__BOOTSTRAP", "__URL", "__PROMETHEUS"))}
        return kept | own | {n: v for n, v in self.variables.items() if n in addresses or n not in own}

    def path(self, name: str, word: str) -> str:
        """A path in the container as one of this machine: in the volume's folder or the container's."""
        for volume in services()[name].get("volumes", []):
            source, target = volume.split(":")[:2]
            if word == target or word.startswith(f"{target}/"):
                return self._folder("volumes", source) + word.removeprefix(target)
        return self._folder("containers", name) + word if word.startswith("/") else word

    def healthy(self, name: str) -> bool:
        """Runs the service's own health check once."""
        return self.check(name).returncode == 0

    def check(self, name: str) -> subprocess.CompletedProcess[str]:
        """The result of the service's health check."""
        kind, *command = services()[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return subprocess.run(
            self.argv(name, command), env=self.environment(name), capture_output=True, text=True, check=False
        )

    def ask(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        """`docker compose exec NAME COMMAND`."""
        return subprocess.run(
            self.argv(name, list(command)),
            env=self.environment(name),
            capture_output=True,
            text=True,
            check=False,
        )

    def log(self, name: str) -> str:
        """What the service has printed."""
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def files(self, volume: str, pattern: str) -> list[Path]:
        """Files in a volume."""
        return list((self.directory / "volumes" / volume).glob(pattern))

    def down(self, how: signal.Signals = signal.SIGTERM) -> None:
        """No process is left behind."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(how)
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _await(self, name: str, condition: str) -> None:
        if name in SERVICES_OF_OTHERS:
            return
        process = self.processes[name]
        if condition == "service_completed_successfully":
            assert process.wait(60) == 0, self.log(name)
        elif condition == "service_healthy":
            wait_for(
                lambda: self.healthy(name), f"{name} is healthy", 60, seen=lambda: self.check(name).stdout
            )

    def _folder(self, *parts: str) -> str:
        folder = self.directory.joinpath(*parts)
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)
