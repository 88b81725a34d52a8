"""Prometheus 3, Loki and a collector, built by Go into `.observe/` from modules of pinned hashes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from house.parts import require
from house.tree import ROOT

FOLDER = ROOT / ".observe"


@dataclass(frozen=True)
class Source:
    """A module as Go's proxy serves it. Its own go.sum pins all that it needs."""

    module: str
    version: str
    sum: str
    also: tuple[tuple[str, Source], ...] = ()
    """Modules that must lie inside it, by their folder."""


PUSH = Source(
    "github.com/grafana/loki/pkg/push",
    "v0.0.0-20250630054201-94c0ba7b0952",
    "h1:rLzoJGDnoXsZV2j/2atL6OVk9AHluTbDOD8Ls9trtIA=",
)
PROGRAMS = {
    "prometheus": Source(
        "github.com/prometheus/prometheus", "v0.315.0", "h1:sFGZWmC2Hk9N1NBJGCnXYZb5hyLCq8yuAMoEjLAg6ac="
    ),
    "loki": Source(
        "github.com/grafana/loki/v3",
        "v3.7.8",
        "h1:bJ0WFWVOjgvG/jYmT9fIX15SYXXDwuEu/IMgTwMA97U=",
        (("pkg/push", PUSH),),
    ),
}
COLLECTOR = Path(__file__).with_name("collector")


def go_program(name: str) -> Path:
    """The program, built at the first call, which takes minutes. Without Go the test is skipped."""
    made = FOLDER / name
    if not made.exists():
        require("Go", shutil.which("go") is not None, "install Go 1.25 or newer")
        FOLDER.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as there:
            source = COLLECTOR if name == "collector" else _unpacked(PROGRAMS[name], Path(there) / name)
            package = "." if name == "collector" else f"./cmd/{name}"
            _go("build", "-o", str(made), package, here=source)
    return made


def _unpacked(source: Source, folder: Path) -> Path:
    told = json.loads(_go("mod", "download", "-json", f"{source.module}@{source.version}", here=ROOT))
    assert told["Sum"] == source.sum, f"{source.module} {source.version} has the hash {told['Sum']}"
    shutil.copytree(told["Dir"], folder, dirs_exist_ok=True)
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    for inner, other in source.also:
        _unpacked(other, folder / inner)
    return folder


def _go(*arguments: str, here: Path) -> str:
    environment = os.environ | {"GOWORK": "off", "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        ["go", *arguments],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
