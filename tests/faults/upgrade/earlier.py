"""An earlier midwatch, out of the repository's own history, and an installation that is upgraded in place.

A job keeps the environment that it was started in, and with it the place where midwatch lies. An upgrade
puts other code in that place, under a job that runs: `Site` does so.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from house.parts import Require
from house.tree import ROOT
from midwatch.agents.query.topic_reader import messages_of
from midwatch.agents.schedulers.environment_file import kept_environment
from midwatch.agents.signing import load_verifier, spec_hash
from midwatch.streams.records import Spec
from midwatch.streams.records.codec import decode
from midwatch.streams.settings.schema import Settings

COMMIT = "2f40b44acb02c1bd3187ed9260e08bde2ba51570"
"""The last one in which every module lay in its first place."""

OPTIONS = ("executor.poll=1s", "ship.interval=0.5s", "worker.within=0.1s", "worker.session_timeout=2s")
"""Quick settings, by the names of that commit."""

JOB = Path(__file__).with_name("restarted_job.py")


def extract(folder: Path, require: Require) -> Path:
    """That commit's sources below `folder`; a visible skip where the history does not reach back to it."""
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]
    done = None
    if shutil.which("git"):
        wanted = [
            *git,
            "archive",
            "--format=zip",
            COMMIT,
            "pyproject.toml",
            "streams",
            "rules",
            "agents",
            "shippers",
        ]
        done = subprocess.run(wanted, capture_output=True, check=False)
    known = done is not None and done.returncode == 0
    require(f"the commit {COMMIT[:7]} of this repository", known, "clone it with its whole history")
    assert done is not None
    with zipfile.ZipFile(io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder)
    return folder


class Site:
    """A place on the path where one midwatch lies, as a wheel lays it out; another may take its place."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "site"
        self._count = 0

    def install(self, tree: Path) -> None:
        """From here on a process that starts with this place on its path is of that tree."""
        self._count += 1
        folder = self.path.with_name(f"site-{self._count}")
        (folder / "midwatch").mkdir(parents=True)
        wheel = tomllib.loads((tree / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
            "wheel"
        ]
        for package in wheel["packages"]:
            for entry in (tree / package).iterdir():
                if entry.name != "__pycache__":
                    (folder / "midwatch" / entry.name).symlink_to(entry)
        draft = self.path.with_name("site.draft")
        draft.symlink_to(folder)
        os.replace(draft, self.path)

    def entrance(self, environment: Mapping[str, str]) -> Path:
        """The file that `python -m midwatch` runs there."""
        find = "import importlib.util as u; print(u.find_spec('midwatch.__main__').origin)"
        done = subprocess.run(
            [sys.executable, "-P", "-c", find], env=environment, capture_output=True, text=True, check=True
        )
        return Path(done.stdout.strip()).resolve()


def command_line(*words: str) -> list[str]:
    """A process of the earlier midwatch."""
    return [sys.executable, "-P", "-m", "midwatch", *words, *(f"--set={option}" for option in OPTIONS)]


def begin(directory: Path, environment: Mapping[str, str], name: str, *words: str) -> str:
    """`midwatch run` as the earlier one has it, armed; returns the job's incarnation."""
    directory.mkdir(exist_ok=True)
    done = subprocess.run(
        [*command_line("run", "--json", f"--job={name}", "--act"), "--", *words],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["incarnation"])


@dataclass(frozen=True)
class Start:
    """One start of the job, by its own word. `shim`: the command line of the process that started it."""

    pid: int
    parent: int
    shim: list[str]
    entrance: str
    job: str
    incarnation: str
    variable: str  # NCCL_DEBUG, which the person had set for the first start
    job_name: str  # as SLURM sets it

    @property
    def module(self) -> str:
        """Which module the shim was run as."""
        found = re.search(r" -m (\S+) ", " ".join(self.shim))
        assert found, self.shim
        return found[1]


def starts(directory: Path) -> list[Start]:
    """All starts so far."""
    file = directory / "starts.jsonl"
    return [Start(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def closed(settings: Settings, job: str, held: bytes) -> Spec:
    """The job's last spec: signed, and the same as `held`, but for the variables, which lie in a file."""
    before, after = decode(held), decode(specs(settings, job)[-1])
    assert isinstance(before, Spec)
    assert isinstance(after, Spec)
    assert load_verifier(settings.state_directory).accepts(after)
    assert before.environment, "an earlier midwatch kept the variables in the spec"
    assert kept_environment(Path(after.environment_file), after.user) == before.environment
    plain = replace(after, environment=before.environment, environment_file="", replaces="")
    assert (replace(plain, signature=before.signature), after.replaces) == (before, spec_hash(before))
    return after


def specs(settings: Settings, job: str) -> list[bytes]:
    """What the topic holds of how to start the job, as it stands."""
    key = job.encode()
    return [m.value for m in messages_of(settings, settings.topic_names.specs, key) if m.key == key]
