"""kill -9 of the shipper at every step: no line is lost, and a line sent twice can be told to be the same."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.chaos.rounds import AT_LEAST_TWO, seed_of
from faults.chaos.tally import counting
from integration.shippers.shipping import Seen, Shipper, Topic, append, numbered
from processes import wait_for

pytestmark = pytest.mark.integration

MakeShipper = Callable[..., Shipper]


def each_line_is_one_place(seen: list[Seen], lines: list[str]) -> None:
    """Every line came, and all copies of it carry the same file, offset and number."""
    assert {line.text for line in seen} == set(lines)
    assert len(set(seen)) == len(lines)


@pytest.mark.parametrize("point", ["read", "send", "acknowledged", "checkpoint"])
def test_killed_at_any_step_while_the_log_is_renamed_nothing_is_lost(
    tmp_path: Path, topic: Topic, shipper: MakeShipper, point: str
) -> None:
    """Each round: lines, a shipper that dies at its n-th pass of the failpoint, more lines, a rename."""
    seed = seed_of(f"shippers/{point}")
    chance = random.Random(seed)
    log, lines = tmp_path / "train.log", numbered(0, AT_LEAST_TWO * 12_000)
    running = shipper(log, "--set=ship.chunk_size=64KiB")
    written = 0

    def write(count: int) -> None:
        nonlocal written
        append(log, lines[written : written + count])
        written += count

    with counting("shippers", f"killed at {point}", seed) as count:
        for number in range(AT_LEAST_TWO):
            write(chance.randint(2_000, 8_000))
            # Each checkpoint and each acknowledgement may cover many chunks: lines go on until it has died.
            running.start(MIDWATCH_FAILPOINT=f"{point}:{chance.randint(1, 6)}")
            assert running.process is not None
            for _ in range(40):
                try:
                    code = running.process.wait(0.3 + chance.random() / 2)
                    break
                except subprocess.TimeoutExpired:
                    write(100)
            else:
                raise AssertionError(f"it never died at {point}")
            assert code == -signal.SIGKILL
            count.hit(f"failpoint {point}")
            if chance.random() < 0.7:
                write(chance.randint(1, 400))
                log.rename(log.with_name(f"train.log.{number}"))
                count.hit("rename")
            write(chance.randint(1, 400))
        running.start()
        topic.wait_for_lines(set(lines[:written]))
        assert running.stop() == 0
        seen = topic.read().lines
        count.add(
            lines=written,
            lost=len(set(lines[:written]) - {line.text for line in seen}),
            twice=len(set(seen)) - written,
            repeats=len(seen) - len(set(seen)),
        )
        each_line_is_one_place(seen, lines[:written])


@pytest.mark.parametrize("point", ["read", "checkpoint"])
def test_a_file_that_was_renamed_before_anything_of_it_arrived_is_found_again(
    tmp_path: Path, topic: Topic, shipper: MakeShipper, point: str
) -> None:
    log, lines = tmp_path / "train.log", numbered(0, 1100)
    running = shipper(log)
    append(log, lines[:1000])
    running.start(MIDWATCH_FAILPOINT=point)
    assert running.process is not None
    assert running.process.wait(60) == -signal.SIGKILL
    log.rename(log.with_name("train.log.1"))
    append(log, lines[1000:])
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
