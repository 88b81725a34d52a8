"""Every stage of the Dockerfile builds and runs with Python 3.11 and 3.13; `make images` plays this.

It installs two locks from the registry twice, so that the default suite leaves it out.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded_stack import variables_of
from house import dockerfile
from house.compose import Compose, decided_after_s
from house.parts import Require
from integration.telemetry.scraped import ports_of_all
from midwatch.agents.local.embedded.stack import Endpoints
from processes import wait_for

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not os.environ.get("IMAGES"), reason="installs for minutes: `make images` runs it"),
]
VERSIONS = ("3.11", "3.13")
SOON_S = 5.0
Stages = dict[str, dockerfile.Stage]


def interpreter(version: str) -> str | None:
    """A Python of this version that can make an environment: of the path, or of a version manager."""
    name = f"python{version}"
    folders = [*os.get_exec_path(), *map(str, Path.home().glob(f".pyenv/versions/{version}*/bin"))]
    for folder in ["/usr/bin", *folders]:
        found = shutil.which(name, path=folder)
        test = [found or "", "-c", "import venv, ensurepip, sys; print(*sys.version_info[:2], sep='.')"]
        if (
            found
            and subprocess.run(test, capture_output=True, text=True, check=False).stdout.strip() == version
        ):
            return found
    return None


@pytest.fixture(scope="module", params=VERSIONS)
def stages(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require: Require
) -> Iterator[Stages]:
    """All stages, built once for each Python."""
    found = interpreter(request.param)
    require(f"Python {request.param}", found is not None, f"install python{request.param} with its venv")
    folder = tmp_path_factory.mktemp(f"py{request.param}")
    yield dockerfile.build(folder, found or "")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("name", ["shipper", "server"])
def test_an_image_runs_its_own_command_and_lacks_nothing(stages: Stages, name: str) -> None:
    stage = stages[name]
    done = stage.run([*stage.entry_point, *stage.command])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: midwatch")
    check = stage.run(["python", "-m", "pip", "check"])
    assert check.returncode == 0, check.stdout


def test_the_shippers_image_has_no_faust_and_the_toy_job(stages: Stages) -> None:
    stage = stages["shipper"]
    assert stage.run(["python", "-m", "midwatch.agents.drill.trainer", "--help"]).returncode == 0
    assert stage.run(["python", "-c", "import faust"]).returncode == 1


def test_the_chain_of_docker_compose_works_in_the_images(
    stages: Stages, stack: Endpoints, tmp_path: Path
) -> None:
    """With what the images hold, and nothing of this tree, the verdict stands within 5 s of the job's end."""
    pythons = {name: stage.python for name, stage in stages.items()}
    variables = variables_of(
        stack,
        TOPICS__PREFIX=f"images-{secrets.token_hex(4)}",
        TELEMETRY__PROMETHEUS=f"127.0.0.1:{ports_of_all()}",
    )
    compose = Compose(tmp_path, variables, pythons=pythons)
    try:
        compose.up()
        assert compose.processes["job"].wait(60) == 1

        def answer() -> dict[str, Any]:
            told = json.loads(compose.ask("executor", "midwatch", "why", "toy", "--json").stdout)
            found: dict[str, Any] = told["attempts"][0]
            return found

        wait_for(lambda: answer()["decisions"], "the verdict and the decision", 60, seen=answer)
        assert answer()["incident"]["verdict"]["error_type"] == "nccl_timeout"
        assert decided_after_s(answer()) <= SOON_S
    finally:
        compose.down()
