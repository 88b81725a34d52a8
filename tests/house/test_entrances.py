"""The two entrances: `.ci/run`, and the script by which make makes its environment."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from house.tree import ROOT

TOOLS = ("sh", "bash", "env", "dirname", "tr", "id", "touch", "cat")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with a shell and no Python, no make, no apt."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (folder / tool).symlink_to(found)
    return folder


def program(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def run(command: list[str], path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path), **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def make_environment(bare: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(["sh", "tests/house/environment.sh", str(bare.parent / "venv")], bare, **variables)


def test_without_a_python_it_says_what_to_install(bare: Path) -> None:
    done = make_environment(bare)
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr
    assert not (bare.parent / "venv").exists()


def test_with_an_old_python_it_names_what_it_found(bare: Path) -> None:
    program(bare, "python3", 'case "$2" in *exit*) exit 1;; *) echo 3.9.2;; esac')
    done = make_environment(bare)
    assert done.returncode != 0
    assert "python3: 3.9.2" in done.stderr


def test_a_python_that_was_named_is_not_replaced_by_another(bare: Path) -> None:
    program(bare, "python3", "exit 0")
    done = make_environment(bare, PYTHON="python9")
    assert done.returncode != 0
    assert "PYTHON=python9" in done.stderr


@pytest.mark.parametrize(("version", "taken"), [(0, "system"), (1, "bin")], ids=["new enough", "too old"])
def test_of_several_pythons_the_systems_own_is_taken_where_it_will_do(
    bare: Path, version: int, taken: str
) -> None:
    system = bare.parent / "system"
    system.mkdir()
    for place, ends in ((bare, 0), (system, version)):
        program(place, "python3", f'[ "$1" != -m ] || exit 7; case "$2" in *exit*) exit {ends};; esac')
    done = make_environment(bare, PATH=f"{bare}:{system}", SYSTEM_BIN=str(system))
    assert f"with {f'{system}/' if taken == 'system' else ''}python3," in done.stdout
    assert done.returncode == 7


@pytest.mark.parametrize(
    ("check_ends_with", "expected"),
    [(0, ["check CI=true", "images CI=true", "test CI=true"]), (2, ["check CI=true"])],
)
def test_the_gate_checks_then_tests_as_ci(bare: Path, check_ends_with: int, expected: list[str]) -> None:
    """A failed check ends the gate; a missing part counts as a failure, since CI is set."""
    record = bare.parent / "made"
    program(bare, "python3", "exit 0")
    program(bare, "make", f'echo "$1 CI=$CI" >> {record}; [ "$1" != check ] || exit {check_ends_with}')

    done = run([".ci/run"], bare)

    assert done.returncode == check_ends_with
    assert record.read_text().splitlines() == expected
