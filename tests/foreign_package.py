"""The package of `docs/extending.md`: its files as they stand there, built and installed into a folder."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from house.tree import ROOT
from midwatch.agents.rulesets.extensions import extensions_of

PAGE = ROOT / "docs" / "extending.md"
SHELF = Path(__file__).with_name("shelf.py")
_BLOCK = re.compile(r"^```(?:toml|python)\n# (\S+)\n(.*?)^```$", re.M | re.S)


def files_of_page() -> dict[str, str]:
    """By their paths."""
    return dict(_BLOCK.findall(PAGE.read_text())) | {"night_parts/__init__.py": ""}


def install(into: Path, changes: Mapping[str, str] | None = None) -> Path:
    """The package in a folder of its own, which goes on PYTHONPATH; `changes` replace words of its files."""
    source, wheels, target = into / "source", into / "wheels", into / "installed"
    _write(files_of_page(), source, changes or {})
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)], source)
    (wheel,) = wheels.iterdir()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--no-index", "--no-deps", "--target", str(target), str(wheel)], source)
    return target


def lay_out(into: Path, changes: Mapping[str, str]) -> Path:
    """As `install` leaves it, without a build: for many small mistakes in one process."""
    files = files_of_page()
    project = tomllib.loads(files.pop("pyproject.toml"))["project"]
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in named.items())
        for group, named in project["entry-points"].items()
    ]
    about = f"{project['name']}-{project['version']}.dist-info"
    files[f"{about}/METADATA"] = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n"
    files[f"{about}/entry_points.txt"] = "".join(groups)
    _write(files, into, changes)
    return into


def forget() -> None:
    """This process imports the package anew: another copy of it may stand on the path."""
    extensions_of.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("night_parts", "day_parts"))]:
        del sys.modules[name]
    importlib.invalidate_caches()


def variables(installed: Path) -> dict[str, str]:
    """With these a process finds the package."""
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {"PYTHONPATH": os.pathsep.join([str(installed), *known])}


def put_shelf_on_path(directory: Path) -> Path:
    """The folder that holds the program `shelf`, whose jobs are kept beside it."""
    folder = directory / "bin"
    folder.mkdir()
    program = folder / "shelf"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {SHELF} {directory / "shelf"} "$@"\n')
    program.chmod(0o755)
    return folder


def _write(files: Mapping[str, str], into: Path, changes: Mapping[str, str]) -> None:
    for path, text in files.items():
        for old, new in changes.items():
            path, text = path.replace(old, new), text.replace(old, new)  # noqa: PLW2901  # one on the other
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        (into / path).write_text(text)


def _run(argv: list[str], where: Path) -> None:
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
