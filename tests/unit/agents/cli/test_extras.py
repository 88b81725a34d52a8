"""A command whose extra is not installed names it, and shows no traceback."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from midwatch.agents.cli.extras import PACKAGES, extra_of

ROOT = Path(__file__).parents[4]

# The import system of an installation without these modules.
_WITHOUT = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition('.')[0] in {modules!r} else super().find_spec(name, path, target)
sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]
from midwatch.agents.cli import main
main({arguments!r})
"""


def _midwatch(directory: Path, extras: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    modules = {module for extra in extras for module in PACKAGES[extra]}
    code = _WITHOUT.format(modules=modules, arguments=[*arguments, f"--state-directory={directory}"])
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, cwd=directory
    )


@pytest.mark.parametrize(
    ("extras", "named"),
    [
        (("server", "embedded"), "midwatch[server,embedded]"),
        (("server",), "midwatch[server]"),
        (("embedded",), "midwatch[embedded]"),
    ],
)
def test_up_names_every_extra_that_it_lacks(tmp_path: Path, extras: tuple[str, ...], named: str) -> None:
    done = _midwatch(tmp_path, extras, "up")
    assert done.returncode == 3, done.stderr
    assert f"pip install '{named}'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())  # nothing was begun


@pytest.mark.parametrize("command", [("worker", "match"), ("executor",)])
def test_other_commands_of_the_server_name_it_too(tmp_path: Path, command: tuple[str, ...]) -> None:
    kafka = ("--set=kafka.bootstrap=127.0.0.1:9", "--set=redis.url=redis://127.0.0.1:9")
    done = _midwatch(tmp_path, ("server",), *command, *kafka)
    assert done.returncode == 3, done.stderr
    assert "pip install 'midwatch[server]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_run_names_the_extra_before_it_starts_a_job_with_checkpoints_on_s3(tmp_path: Path) -> None:
    code = _WITHOUT.format(
        modules={"s3fs"}, arguments=["run", "--checkpoint-dir", "s3://bucket/run", "--", "true"]
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 3, done.stderr
    assert "pip install 'midwatch[s3]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_extras_are_those_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(PACKAGES) <= set(declared)
    for extra, modules in PACKAGES.items():
        assert len(modules) == len(declared[extra])
    assert extra_of("faust.app") == "server"
    assert extra_of("yaml") is None
