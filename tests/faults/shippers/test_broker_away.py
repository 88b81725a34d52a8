"""The broker is away: the file is the buffer, memory stays flat, and all arrives when it is back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.shippers.shipping import Shipper, Topic, append, numbered
from midwatch.agents.local.embedded.stack import EmbeddedStack
from processes import wait_for

pytestmark = pytest.mark.integration

MakeShipper = Callable[..., Shipper]

MIB = 1024 * 1024
FLAT = 12 * MIB
"""What memory may move by once the budget of bytes in flight is used up."""


def write_much(log: Path, first: int, count: int) -> list[str]:
    lines = [line + " " + "x" * 400 for line in numbered(first, first + count)]
    append(log, lines)
    return lines


def shipping_the_first_thousand(
    tmp_path: Path, topic: Topic, shipper: MakeShipper, *program: str
) -> tuple[Path, list[str], Shipper]:
    """A log, the 3,000 lines it is to have, and a shipper that has shipped the first 1,000 of them."""
    log, lines = tmp_path / "train.log", numbered(0, 3000)
    append(log, lines[:1000])
    running = shipper(log)
    running.program = program or running.program
    running.start()
    topic.wait_for_lines(set(lines[:1000]))
    return log, lines, running


@pytest.mark.parametrize("away", ["killed", "frozen"])
def test_memory_is_flat_and_nothing_is_lost(
    tmp_path: Path, topic: Topic, shipper: MakeShipper, servers: EmbeddedStack, away: str
) -> None:
    log = tmp_path / "train.log"
    lines = write_much(log, 0, 1000)
    running = shipper(log).start()
    topic.wait_for_lines(set(lines))
    if away == "killed":
        servers.kafka.kill()
    else:
        os.kill(servers.kafka.pid, signal.SIGSTOP)
    measured: list[int] = []
    try:
        # Far more than may be in flight: 100 MiB in ten parts, with a look at the memory after each.
        for part in range(10):
            lines += write_much(log, 1000 + part * 24_000, 24_000)
            running.await_turns()
            measured.append(running.memory())
        wait_for(lambda: "does not acknowledge" in running.said_so_far(), "a word about the broker")
        measured.append(running.memory())
    finally:
        if away == "killed":
            servers.kafka.start()
        else:
            os.kill(servers.kafka.pid, signal.SIGCONT)
    topic.wait_for_lines(set(lines), limit=180)
    assert max(measured[2:]) - min(measured[2:]) < FLAT, measured
    wait_for(lambda: "Kafka is back" in running.said_so_far(), "a word about its return")
    assert running.stop() == 0
    assert len({line.text for line in topic.read().lines}) == len(lines)
    assert len(set(topic.lines)) == len(lines)


def test_a_broker_that_is_not_there_yet_is_waited_for_and_said_once(
    tmp_path: Path, topic: Topic, shipper: MakeShipper, servers: EmbeddedStack
) -> None:
    log, lines = tmp_path / "train.log", numbered(0, 1000)
    append(log, lines[:500])
    servers.kafka.stop()
    try:
        running = shipper(log).start()
        wait_for(lambda: "cannot be used" in running.said_so_far(), "a word about the broker")
        # Rotated while nothing can be sent: the open file is kept.
        append(log, lines[500:])
        log.rename(tmp_path / "elsewhere")
    finally:
        servers.kafka.start()
    topic.wait_for_lines(set(lines))
    wait_for(lambda: "Kafka answers" in running.said_so_far(), "a word about the broker's return")
    assert running.said_so_far().count("cannot be used") == 1


def test_after_an_outage_that_outlasts_its_patience_the_shipper_connects_anew(
    tmp_path: Path, topic: Topic, shipper: MakeShipper, servers: EmbeddedStack
) -> None:
    """Its patience is a quarter of a real one's. `faults/chain` takes the broker away for a whole minute."""
    impatient = str(Path(__file__).with_name("impatient.py"))
    log, lines, running = shipping_the_first_thousand(tmp_path, topic, shipper, "-P", impatient)
    servers.kafka.kill()
    try:
        append(log, lines[1000:2000])
        wait_for(lambda: "sending again" in running.said_so_far(), "the shipper gives its producer up")
        append(log, lines[2000:])
    finally:
        servers.kafka.start()
    topic.wait_for_lines(set(lines))
    assert "Traceback" not in running.said_so_far()
    assert running.stop() == 0
    assert len(set(topic.lines)) == len(lines)


@pytest.mark.capability("X-41")
def test_what_the_broker_never_had_is_not_remembered_as_sent(
    tmp_path: Path, topic: Topic, shipper: MakeShipper, servers: EmbeddedStack
) -> None:
    log, lines, running = shipping_the_first_thousand(tmp_path, topic, shipper)
    servers.kafka.kill()
    try:
        append(log, lines[1000:])
        running.await_turns()
        assert running.process is not None
        running.process.terminate()
        running.await_turns()
        running.process.terminate()  # no more patience
        assert running.process.wait(20) == 1
        assert "bytes unsent" in running.said_so_far()
    finally:
        servers.kafka.start()
    running.start()
    topic.wait_for_lines(set(lines))
    assert len(set(topic.lines)) == len(lines)
