"""kill -9 of the shipper at every step: no line is lost, and a line sent twice can be told to be the same."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.shippers.shipping import Seen, Shipper, Topic, append, numbered
from processes import wait_for

pytestmark = pytest.mark.integration

MakeShipper = Callable[..., Shipper]


def each_line_is_one_place(seen: list[Seen], lines: list[str]) -> None:
    """Every line came, and all copies of it carry the same file, offset and number."""
    assert {line.text for line in seen} == set(lines)
    assert len(set(seen)) == len(lines)


@pytest.mark.parametrize("where", ["read", "read:4", "send", "send:4", "acknowledged", "checkpoint"])
def test_killed_at_any_step_nothing_is_lost(
    tmp_path: Path, topic: Topic, shipper: MakeShipper, where: str
) -> None:
    log, lines = tmp_path / "train.log", numbered(0, 30_000)
    running = shipper(log, "--set=ship.chunk_size=64KiB")
    append(log, lines[:25_000])
    running.start(MIDWATCH_FAILPOINT=where)
    assert running.process is not None
    assert running.process.wait(30) == -signal.SIGKILL
    append(log, lines[25_000:])
    running.start()
    topic.wait_for_lines(set(lines))
    assert running.stop() == 0
    each_line_is_one_place(topic.read().lines, lines)


def test_killed_again_and_again_while_the_log_is_rotated_nothing_is_lost(
    tmp_path: Path, topic: Topic, shipper: MakeShipper
) -> None:
    log, lines = tmp_path / "train.log", numbered(0, 60_000)
    running = shipper(log, "--set=ship.chunk_size=64KiB")
    stopped, written = threading.Event(), 100

    def write() -> None:
        nonlocal written
        while written < len(lines) and not stopped.wait(0.005):
            append(log, lines[written : written + 100])
            written += 100
            if written % 4000 == 0:
                log.rename(log.with_name(f"train.log.{written // 4000}"))

    def await_written(count: int) -> None:
        wait_for(lambda: written >= min(count, len(lines)), f"{count} lines written")

    append(log, lines[:100])
    running.start()
    wait_for(lambda: bool(running.checkpoints()), "the first checkpoint")
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for count in (8_000, 20_000, 32_000, 44_000, 56_000):
            await_written(count)
            running.kill()
            await_written(count + 5_000)  # rotated at least once while nobody looked
            running.start()
        writer.join(60)
        topic.wait_for_lines(set(lines))
    finally:
        stopped.set()
        writer.join()
    each_line_is_one_place(topic.lines, lines)


def test_a_checkpoint_that_cannot_be_written_stops_no_lines(
    tmp_path: Path, topic: Topic, shipper: MakeShipper
) -> None:
    log, lines = tmp_path / "train.log", numbered(0, 2000)
    running = shipper(log)
    append(log, lines[:1000])
    running.start()
    wait_for(lambda: bool(running.checkpoints()), "the first checkpoint")
    obstacle = running.checkpoints()[0].with_name(".checkpoint.json")
    obstacle.mkdir()
    append(log, lines[1000:1500])
    wait_for(lambda: "the checkpoint cannot be written" in running.said_so_far(), "a word about the disk")
    append(log, lines[1500:])
    topic.wait_for_lines(set(lines))
    obstacle.rmdir()
    assert running.stop() == 0
    each_line_is_one_place(topic.read().lines, lines)
    assert running.said_so_far().count("the checkpoint cannot be written") == 1
