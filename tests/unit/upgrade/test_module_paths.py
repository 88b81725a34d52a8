"""What earlier versions named by its module path still runs under that path."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from house.tree import ROOT, SOURCE_ROOTS
from midwatch.agents.schedulers.local.effect_file import read

FILE = Path(__file__).with_name("module_paths.txt")
LINES = [line.split(maxsplit=1) for line in FILE.read_text().splitlines() if line and line[0] != "#"]
BEHIND = {"midwatch.shippers.pipe_child": "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"}


def run(words: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    """As the process that holds the path starts it, in an installation of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MIDWATCH_", "SLURM_"))}
    kept |= {"MIDWATCH_STATE_DIRECTORY": str(place / "state")}
    kept["PYTHONPATH"] = os.pathsep.join(str(ROOT / root) for root in SOURCE_ROOTS)
    return subprocess.run(
        [sys.executable, "-P", *words],
        cwd=place,
        env=kept,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(("status", "line"), LINES, ids=[line[:60] for _, line in LINES])
def test_a_kept_command_line_still_runs(status: str, line: str, tmp_path: Path) -> None:
    words = shlex.split(line.format(place=tmp_path))
    done = run(["-m", *words], tmp_path)
    assert done.returncode == int(status), done.stderr
    assert "No module named" not in done.stderr
    assert BEHIND.get(words[0], "") in done.stderr


def test_the_earlier_shim_of_local_still_writes_down_the_end(tmp_path: Path) -> None:
    key = "0123456789abcdef"
    run(
        ["-m", "midwatch.agents.clusters.local_shim", str(tmp_path), key, "--", "sh", "-c", "exit 7"],
        tmp_path,
    )
    record = read(tmp_path, key)
    assert record is not None
    assert record.code == 7


def test_docker_compose_names_only_what_is_kept() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].values()
    words = [[*service.get("entrypoint", []), *service.get("command", [])] for service in services]
    named = {word for line in words for word in line if word.startswith("midwatch.")}
    assert named
    assert named <= {line.split()[0] for _, line in LINES}


IMPORTS = (
    "from midwatch.streams.settings.file import load_settings",
    "from midwatch.streams.services.topic_admin import make_topics",
)


def test_what_a_kept_docker_compose_imports_is_still_there(tmp_path: Path) -> None:
    done = run(["-c", "; ".join(IMPORTS)], tmp_path)
    assert done.returncode == 0, done.stderr
    text = (ROOT / "docker-compose.yml").read_text()
    assert set(re.findall(r"from midwatch\S* import \w+", text)) <= set(IMPORTS)
