"""On the real chain: what a scrape of each process says of a job, and what it says once nobody sees the job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, installation
from integration.chain.training import PROCESSES
from integration.telemetry.scraped import Scrapes, ports_of_all
from midwatch.agents.local.embedded.stack import Endpoints
from processes import wait_for

pytestmark = pytest.mark.integration
SOON = 90.0


@pytest.fixture(scope="module")
def scrapes() -> Scrapes:
    return Scrapes(ports_of_all())


@pytest.fixture(scope="module")
def watch(
    stack: Endpoints, scrapes: Scrapes, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        made.environment["MIDWATCH_TELEMETRY__PROMETHEUS"] = f"127.0.0.1:{scrapes.base}"
        made.environment["MIDWATCH_TELEMETRY__FORGET"] = "2s"
        for name in PROCESSES:
            made.start(name)
        made.ready()
        yield made


def test_a_job_from_its_first_step_to_its_rescue_and_its_end(
    watch: Installation, scrapes: Scrapes, tmp_path: Path
) -> None:
    job = watch.run(tmp_path / "job", nodes=("n0", "n1"))
    run = f"local:{_user(job)}/{job.name}"
    job.ship()
    wait_for(lambda: (scrapes.value("detect", "midwatch_job_step", run=run) or 0) > 5, "steps", SOON)
    wait_for(lambda: _state(scrapes, run) == "watched", "the job is watched", SOON)
    for s in scrapes.samples("detect"):
        print(s)


def _user(job: Job) -> str:
    story = job.story()
    assert story is not None
    return story.job.split(":")[1].split("/")[0]


def _state(scrapes: Scrapes, run: str) -> str:
    states = [
        sample.labels["state"]
        for sample in scrapes.samples("detect")
        if sample.name == "midwatch_job_state" and sample.labels["run"] == run and sample.value
    ]
    return ",".join(states)
