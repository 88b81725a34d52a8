"""The Dockerfile's stages without Docker: each in a folder of its own, with a fresh Python for its image.

What stands in the Dockerfile is what runs. Absolute paths are those of the stage's folder. Two commands that
would change this machine are replaced: `useradd` notes the user, and `install -o` accepts only a noted one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from house.tree import ROOT, files_of_repository

_USERADD = """#!/bin/sh
for word; do name=$word; done
echo "$name" >> "$STAGE_ROOT/users"
"""
_INSTALL = """#!/bin/sh
if [ "$1 $2" = "-d -o" ]; then
    grep -qx "$3" "$STAGE_ROOT/users" || { echo "install: no user $3" >&2; exit 1; }
    shift 3
    exec /usr/bin/install -d "$@"
fi
exec /usr/bin/install "$@"
"""


class Instruction(NamedTuple):
    """One line of the Dockerfile: `RUN`, and what stands behind it."""

    word: str
    text: str


def stages() -> dict[str, list[Instruction]]:
    """The stages in their order; each begins with its FROM."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "FROM":
            current = found[rest.rpartition(" AS ")[2]] = []
        current.append(Instruction(word, rest))
    return found


def context() -> Iterator[Path]:
    """The files that `docker build` would send: those of the repository that .dockerignore lets through."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    for path in files_of_repository():
        if path.relative_to(ROOT).parts[0] in allowed:
            yield path.relative_to(ROOT)


@dataclass
class Stage:
    """A built stage: its folder, its variables and what it runs by default."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    entry_point: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    user: str = ""
    directory: str = "/"

    @property
    def python(self) -> Path:
        """The interpreter that stands for the image's."""
        return self.root / "python" / "bin" / "python"

    def run(self, command: list[str] | str) -> subprocess.CompletedProcess[str]:
        """Runs a shell line of RUN, or a command, with the stage's variables and not this machine's."""
        argv = ["sh", "-ec", command] if isinstance(command, str) else command
        path = f"{self.root / 'stubs'}:{self.python.parent}:/usr/bin:/bin"
        kept = {"HOME": str(self.root), "PATH": path, "STAGE_ROOT": str(self.root)}
        proxies = {n: v for n, v in os.environ.items() if n.lower().startswith(("pip_", "https_", "ssl_"))}
        return subprocess.run(
            [self._here(word) for word in argv],
            cwd=self._path(self.directory),
            env=proxies | kept | {n: self._here(v) for n, v in self.environment.items()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def _here(self, text: str) -> str:
        """The text with absolute paths below the stage's folder, but for those that we made ourselves."""
        if str(self.root) in text:
            return text
        return re.sub(r"(?<![\w./:])/(?=[a-z])", f"{self.root}/", text)

    def _path(self, text: str) -> Path:
        return self.root / text.lstrip("/") if text.startswith("/") else self._path(self.directory) / text

    def copy(self, text: str, others: dict[str, Stage]) -> None:
        """COPY, from the context or from another stage."""
        words = text.split()
        if words[0].startswith("--from="):
            source = others[words[0].removeprefix("--from=")]
            shutil.copytree(source._path(words[1]), self._path(words[2]), dirs_exist_ok=True)
            return
        *names, target = words
        for path in context():
            if "." in names or str(path) in names or any(str(path).startswith(f"{n}/") for n in names):
                place = self._path(target) / (path if "." in names else path.name)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, place)


def build(folder: Path, interpreter: str) -> dict[str, Stage]:
    """Builds all stages with this Python. Raises AssertionError with the output of a command that fails."""
    built: dict[str, Stage] = {}
    for name, instructions in stages().items():
        base = built.get(instructions[0].text.partition(" ")[0])
        root = folder / name
        stage = built[name] = (
            replace(base, root=root, environment=dict(base.environment)) if base else Stage(root)
        )
        _prepare(root, interpreter)
        for word, text in instructions[1:]:
            match word:
                case "ENV":
                    stage.environment |= dict(pair.split("=", 1) for pair in text.split())
                case "WORKDIR":
                    stage.directory = text
                    stage._path(text).mkdir(parents=True, exist_ok=True)
                case "COPY":
                    stage.copy(text, built)
                case "RUN":
                    done = stage.run(text)
                    assert done.returncode == 0, f"{name}: RUN {text}\n{done.stdout}{done.stderr}"
                case "USER":
                    assert text in (root / "users").read_text().split(), (
                        f"{name}: nobody made the user {text}"
                    )
                    stage.user = text
                case "ENTRYPOINT":
                    stage.entry_point = json.loads(text)
                case "CMD":
                    stage.command = json.loads(text)
                case _:
                    raise AssertionError(f"{name}: {word} is not understood here")
    return built


def _prepare(root: Path, interpreter: str) -> None:
    for name in ("tmp", "stubs"):
        (root / name).mkdir(parents=True)
    subprocess.run([interpreter, "-m", "venv", str(root / "python")], check=True)
    for name, text in (("useradd", _USERADD), ("install", _INSTALL)):
        (root / "stubs" / name).write_text(text)
        (root / "stubs" / name).chmod(0o755)
