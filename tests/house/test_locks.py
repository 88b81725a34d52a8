"""The locks: hashed, without addresses or paths, and in step with pyproject.toml."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from house.tree import ROOT, SOURCE_ROOTS, files_of_repository

LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>[^\\]+?))? \\")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def pins(lock: Path) -> dict[str, set[str]]:
    """Name to versions; several where platforms differ."""
    found: dict[str, set[str]] = {}
    for line in lock.read_text(encoding="utf-8").splitlines():
        if pin := PIN.match(line):
            found.setdefault(pin["name"], set()).add(pin["version"])
    return found


def test_there_is_one_for_each_kind_of_installation() -> None:
    names = ["base.lock", "build.lock", "dev.lock", "ray.lock", "server.lock", "uv.lock"]
    assert [lock.name for lock in LOCKS] == names


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_line_is_a_pin_or_a_hash(lock: Path) -> None:
    """So no address of a registry, no option and no path of a machine can stand in it."""
    hashed = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
    wrong = [
        x
        for x in lock.read_text(encoding="utf-8").splitlines()
        if not (PIN.fullmatch(x) or hashed.fullmatch(x))
    ]
    assert wrong == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_has_a_hash(lock: Path) -> None:
    lines = lock.read_text(encoding="utf-8").splitlines()
    bare = [a for a, b in zip(lines, [*lines[1:], ""], strict=True) if PIN.match(a) and "--hash" not in b]
    assert bare == []


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("base.lock", []), ("server.lock", ["server", "otel"]), ("dev.lock", list(EXTRAS))],
)
def test_it_holds_what_pyproject_declares(lock: str, extras: list[str]) -> None:
    """Renew with `make lock` when this fails."""
    held = pins(ROOT / "requirements" / lock)
    declared = [*PROJECT["dependencies"], *(entry for extra in extras for entry in EXTRAS[extra])]
    for requirement in map(Requirement, declared):
        versions = held.get(canonicalize_name(requirement.name), set())
        assert versions, f"{requirement} is not in {lock}: make lock"
        assert all(requirement.specifier.contains(v) for v in versions), (
            f"{requirement} against {versions}: make lock"
        )


@pytest.mark.parametrize("lock", ["base.lock", "server.lock", "build.lock"])
def test_all_locks_agree(lock: str) -> None:
    """What the tests ran with is what the images hold."""
    tested = pins(ROOT / "requirements" / "dev.lock")
    assert {name: v for name, v in pins(ROOT / "requirements" / lock).items() if tested.get(name) != v} == {}


def test_every_import_is_declared() -> None:
    """An import that works only because something else brought the package breaks with its next release."""
    declared = [*PROJECT["dependencies"], *(entry for extra in EXTRAS.values() for entry in extra)]
    names = {canonicalize_name(Requirement(entry).name) for entry in declared}
    providers = importlib.metadata.packages_distributions()
    undeclared = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in files_of_repository()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in (*SOURCE_ROOTS, "tests")
        for module in imported_by(path) - {"midwatch"}
        if module in providers and not names & {canonicalize_name(p) for p in providers[module]}
    }
    assert undeclared == set()


def imported_by(path: Path) -> set[str]:
    """The first name of every absolute import of a module, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_every_dependency_says_why_it_is_there() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    declared = text[text.index("dependencies = [") : text.index("[project.scripts]")]
    entries = [line for line in declared.splitlines() if re.match(r'\s*(\w+ = \[)?"', line.strip())]
    assert [line for line in entries if "#" not in line] == []
