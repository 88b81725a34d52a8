"""What `docker compose up` shows: the toy job dies, and the verdict stands at once."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from house.compose import Compose
from processes import wait_for

pytestmark = pytest.mark.integration
SOON_S = 5.0


@pytest.mark.capability("C-1")
def test_the_verdict_stands_within_5_s_of_the_toy_jobs_end(compose: Compose) -> None:
    """The commands, variables and order of docker-compose.yml; `why` is asked as its first lines say."""
    compose.up()
    assert compose.processes["job"].wait(60) == 1
    ended = time.monotonic()
    seen: list[str] = []

    def settled() -> bool:
        seen.append(compose.ask("executor", "midwatch", "why", "toy", "--json").stdout)
        return '"settled"' in seen[-1]

    try:
        wait_for(settled, "the verdict", SOON_S)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{seen[-1]}\n{(compose.directory / 'job.log').read_text()}") from error
    took = time.monotonic() - ended
    answer = json.loads(seen[-1])
    print(f"verdict {took:.1f} s after the end")
    print(json.dumps(answer, indent=1))
    assert Path(compose.directory / "job.log").read_text().count("Watchdog caught collective operation timeout")
