"""`midwatch run -- sbatch …` on a real SLURM does as sbatch does: names, answers, and the environment."""

from __future__ import annotations

import secrets
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from executor_world import World
from midwatch.agents.launch.start import Started
from midwatch.agents.query.topic_reader import read_topics
from midwatch.streams.records import Spec
from midwatch.streams.records.effect_keys import effect_key
from midwatch.streams.records.identity import native_id
from processes import wait_for
from slurm_lab.lab import Lab

pytestmark = [pytest.mark.integration, pytest.mark.slurm]

OVER = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")
SECRET = "a-secret-of-the-person"


def typed(cluster: World, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`midwatch run --act`, as a person with these variables types it."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "midwatch", "run", "--act", *words],
        env=cluster.environment | variables,
        cwd=cluster.directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def id_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def shown(slurm: Lab, native: str, field: str) -> str:
    """One field of `scontrol show job`."""
    words = slurm.run("scontrol", "show", "job", native).stdout.split()
    return next(word.partition("=")[2] for word in words if word.startswith(f"{field}="))


def noting(cluster: World, *lines: str, code: int = 0) -> tuple[Path, Path]:
    """A batch script that writes down its environment, a file for each start; and their folder."""
    folder = cluster.directory / f"environments-{secrets.token_hex(4)}"
    folder.mkdir()
    script = cluster.directory / f"t-{secrets.token_hex(4)}.sh"
    script.write_text(
        "\n".join(["#!/bin/bash", *lines, f"env -0 > {folder}/$SLURM_JOB_ID", f"exit {code}"]) + "\n"
    )
    return script, folder


def environment(folder: Path, native: str) -> dict[str, str]:
    entries = (folder / native).read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


def test_a_script_that_needs_a_variable_of_the_person_finds_it(slurm: Lab, cluster: World) -> None:
    script, found = cluster.directory / "t.sh", cluster.directory / "found"
    script.write_text(
        f"#!{sys.executable}\n#SBATCH --ntasks=1\n"
        f"import os, pathlib\npathlib.Path({str(found)!r}).write_text(os.environ['RUN'])\n"
    )
    native = id_of(typed(cluster, "--", "sbatch", str(script), RUN="x"))
    assert slurm.wait_state(native, *OVER) == "COMPLETED"
    assert found.read_text() == "x"


@pytest.mark.parametrize(
    ("line", "option", "variable", "name"),
    [
        ("#SBATCH --job-name=named", "", "", "named"),
        ("#SBATCH -J named", "", "", "named"),
        ("#SBATCH --job-name=named", "--job-name=other", "", "other"),
        ("#SBATCH --job-name=named", "", "third", "third"),
        ("", "", "", "t.sh"),
    ],
)
def test_the_name_of_the_script_is_the_jobs_name_and_that_of_its_output(
    slurm: Lab, cluster: World, line: str, option: str, variable: str, name: str
) -> None:
    script = cluster.directory / "t.sh"
    script.write_text(f"#!/bin/sh\n{line}\n#SBATCH --output={cluster.directory}/%x.out\necho here\n")
    more = {"SBATCH_JOB_NAME": variable} if variable else {}
    native = id_of(typed(cluster, "--", "sbatch", *filter(None, [option]), str(script), **more))
    assert shown(slurm, native, "JobName") == name
    slurm.wait_state(native, *OVER)
    assert "here" in (cluster.directory / f"{name}.out").read_text()


def test_a_wrapped_command_has_the_name_that_sbatch_gives_it(slurm: Lab, cluster: World) -> None:
    native = id_of(typed(cluster, "--", "sbatch", "--wrap", "hostname"))
    assert shown(slurm, native, "JobName") == "wrap"


def test_parsable_prints_the_bare_id_and_nothing_else(slurm: Lab, cluster: World) -> None:
    done = typed(cluster, "--", "sbatch", "--parsable", "--wrap", "hostname")
    assert done.returncode == 0, done.stderr
    assert done.stdout.removesuffix("\n").isdigit(), done.stdout
    assert slurm.state(done.stdout.strip())
