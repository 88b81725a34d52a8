"""What `docker compose up` shows: the toy job dies, its verdict stands at once, health checks tell the truth.

The commands, variables, volumes and order of start are those of docker-compose.yml. Only Docker is not there.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from house.compose import Compose, decided_after_s
from midwatch.agents.local.embedded.stack import EmbeddedStack
from processes import wait_for

pytestmark = pytest.mark.integration
SOON_S = 5.0
WORKERS = ("match", "detect", "decide", "executor")


def why(compose: Compose) -> list[dict[str, Any]]:
    """The attempts of the toy job, as a person asks for them by the first lines of docker-compose.yml."""
    answer = compose.ask("executor", "midwatch", "why", "toy", "--json")
    assert answer.returncode in (0, 1), answer.stderr
    attempts: list[dict[str, Any]] = json.loads(answer.stdout)["attempts"]
    return attempts


def ill(compose: Compose, name: str) -> bool:
    """Whether the service's health check fails."""
    return not compose.healthy(name)


def decided(compose: Compose, attempt: int) -> Callable[[], bool]:
    """Whether the attempt's incident is settled and decide has spoken."""

    def told() -> bool:
        attempts = why(compose)
        if len(attempts) < attempt:
            return False
        last = attempts[attempt - 1]
        return bool(last["incident"] and last["incident"]["state"] == "settled" and last["decisions"])

    return told


@pytest.mark.capability("C-1", "C-2")
def test_the_verdict_stands_within_5_s_of_the_toy_jobs_end(compose: Compose) -> None:
    """The output that proves it also went to the container's own log."""
    assert compose.processes["job"].wait(60) == 1
    log = compose.log("job")
    wait_for(decided(compose, 1), "the verdict", 60, seen=lambda: (why(compose), log))
    (attempt,) = why(compose)
    print(f"decided {decided_after_s(attempt):.2f} s after the job's end")
    assert decided_after_s(attempt) <= SOON_S
    verdict = attempt["incident"]["verdict"]
    assert (verdict["mode"], verdict["error_type"]) == ("crash", "nccl_timeout")
    assert verdict["root_line"] in log
    assert (attempt["incident"]["scheduler"]["new"], attempt["incident"]["scheduler"]["exit_code"]) == (
        "FAILED",
        1,
    )
    assert [decision["action"] for decision in attempt["decisions"]] == ["restart"]


@pytest.mark.capability("C-1", "C-2")
def test_a_second_run_of_the_container_is_a_second_attempt(compose: Compose) -> None:
    """Started again with its volumes, it goes on from its checkpoint, and dies for want of GPU memory."""
    assert compose.start("job", {"nccl@40": "oom@45"}).wait(60) == 1
    wait_for(decided(compose, 2), "the verdict", 60, seen=lambda: why(compose))
    attempt = why(compose)[1]
    assert decided_after_s(attempt) <= SOON_S
    verdict = attempt["incident"]["verdict"]
    assert (verdict["mode"], verdict["error_type"]) == ("crash", "oom")
    assert compose.files("shipper", "unsent/*") == []


@pytest.mark.capability("X-14")
@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_at_work_is_healthy(compose: Compose, name: str) -> None:
    wait_for(lambda: compose.healthy(name), f"{name} is healthy", 30, seen=lambda: compose.check(name).stdout)


@pytest.mark.capability("X-14")
@pytest.mark.parametrize("name", ["detect", "executor"])
def test_a_worker_that_hangs_is_not_healthy(compose: Compose, name: str) -> None:
    """And it is again once it goes on."""
    process = compose.processes[name]
    process.send_signal(signal.SIGSTOP)
    try:
        wait_for(
            lambda: "stands still" in compose.ask(name, "midwatch", "health", name, "--within", "3").stdout,
            f"{name} is unhealthy",
            30,
        )
    finally:
        process.send_signal(signal.SIGCONT)
    wait_for(lambda: compose.healthy(name), f"{name} is healthy again", 30)


def test_a_health_check_is_cheap(compose: Compose) -> None:
    """Of all that the command imports, nothing speaks to Kafka or Redis."""
    program = "from midwatch.agents.cli import main; main(['health', 'match'])"
    done = compose.ask("match", "python", "-X", "importtime", "-c", program)
    assert done.returncode == 0, done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "midwatch.streams.worker.health" in imported
    assert imported & {"faust", "aiokafka", "redis", "kafka", "kafka.producer"} == set()


@pytest.mark.capability("X-14")
def test_workers_without_kafka_are_not_healthy(compose: Compose, servers: EmbeddedStack) -> None:
    """The last test of the module: the broker dies under all of them."""
    servers.kafka.kill()
    try:
        for name in WORKERS:
            wait_for(
                partial(ill, compose, name), f"{name} is unhealthy", 40, seen=partial(compose.check, name)
            )
    finally:
        compose.down(signal.SIGKILL)  # without Kafka they would stop slowly
        servers.kafka.start()
