"""`midwatch ship PATH…` on a real Kafka: all lines in order, beats behind them, a final word."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from integration.shippers.shipping import Shipper, Topic, append, numbered
from midwatch.streams.records import Chunk, Heartbeat
from processes import wait_for

pytestmark = pytest.mark.integration

MakeShipper = Callable[..., Shipper]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


@pytest.mark.capability("C-1")
def test_lines_arrive_once_in_order_with_their_places(log: Path, topic: Topic, shipper: MakeShipper) -> None:
    lines = numbered(0, 20_000)
    append(log, lines[:10_000])
    running = shipper(log).start()
    topic.wait_for_lines(set(lines[:10_000]))
    append(log, lines[10_000:])
    topic.wait_for_lines(set(lines))
    assert running.stop() == 0
    assert [line.text for line in topic.read().lines] == lines
    width = len(lines[0]) + 1
    assert [(line.offset, line.number) for line in topic.lines] == [(i * width, i + 1) for i in range(20_000)]


@pytest.mark.capability("C-1")
def test_a_beat_travels_behind_the_lines_that_it_vouches_for(
    log: Path, topic: Topic, shipper: MakeShipper
) -> None:
    running = shipper(log).start()
    for i in range(20):
        append(log, numbered(i, i + 1))
        topic.wait_for_lines(set(numbered(i, i + 1)))
    assert running.stop() == 0
    topic.read()
    assert len({partition for partition, _ in topic.records}) == 1
    beats = topic.beats
    assert [beat.sequence for beat in beats] == list(range(1, len(beats) + 1))
    assert all(later.monotonic > earlier.monotonic for earlier, later in pairwise(beats))
    assert beats[-1].final
    assert beats[-1].at_end
    assert not any(beat.final for beat in beats[:-1])
    last = max(i for i, (_, record) in enumerate(topic.records) if isinstance(record, Chunk))
    assert any(isinstance(record, Heartbeat) for _, record in topic.records[last:])


def test_beats_come_while_the_job_is_silent(log: Path, topic: Topic, shipper: MakeShipper) -> None:
    append(log, ["one"])
    shipper(log).start()
    wait_for(lambda: len(topic.read().beats) >= 5, "five beats")
    assert [line.text for line in topic.lines] == ["one"]
    assert all(beat.at_end and beat.backlog == 0 for beat in topic.beats[-3:])


def test_it_ends_with_the_jobs_process_and_ships_its_last_words(
    log: Path, topic: Topic, shipper: MakeShipper
) -> None:
    # It lives until it is told to end, and prints only then.
    script = "import sys; sys.stdin.read(); open(sys.argv[1], 'w').write('last words without an end')"
    job = subprocess.Popen([sys.executable, "-c", script, str(log)], stdin=subprocess.PIPE)
    running = shipper("--pid", str(job.pid), "--until-pid", log).start()
    wait_for(lambda: any(beat.alive for beat in topic.read().beats), "a beat of a live job")
    job.communicate()
    assert running.process is not None
    assert running.process.wait(20) == 0
    wait_for(lambda: topic.read().beats[-1].final, "its final beat")
    assert [line.text for line in topic.lines] == ["last words without an end"]
    assert (topic.beats[-1].final, topic.beats[-1].alive) == (True, False)


def test_a_second_start_goes_on_where_the_first_one_ended(
    log: Path, topic: Topic, shipper: MakeShipper
) -> None:
    append(log, numbered(0, 100))
    running = shipper(log).start()
    topic.wait_for_lines(set(numbered(0, 100)))
    assert running.stop() == 0
    append(log, numbered(100, 200))
    running.start()
    topic.wait_for_lines(set(numbered(0, 200)))
    assert [line.text for line in topic.lines] == numbered(0, 200)


def test_rename_rotation_under_load_loses_and_repeats_nothing(
    log: Path, topic: Topic, shipper: MakeShipper
) -> None:
    shipper(log).start()
    wait_for(lambda: bool(topic.read().beats), "the first beat")
    lines = numbered(0, 60_000)
    for rotation in range(12):
        for burst in range(0, 5000, 500):
            append(log, lines[rotation * 5000 + burst : rotation * 5000 + burst + 500])
        log.rename(log.with_name(f"train.log.{rotation}"))
    topic.wait_for_lines(set(lines))
    assert len(topic.lines) == len(lines)


def test_two_shippers_of_one_job_and_node_are_refused(
    log: Path, topic: Topic, shipper: MakeShipper, tmp_path: Path
) -> None:
    shipper(log).start()
    wait_for(lambda: bool(topic.read().beats), "the first beat")
    second = Shipper(topic, tmp_path / "state0", log).start()
    assert second.process is not None
    assert second.process.wait(20) == 2
    assert "another shipper" in second.said.read_text()
