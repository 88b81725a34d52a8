"""`train | midwatch ship -`: the training's output first, its copy second, and neither in the other's way."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from integration.shippers.shipping import Topic, numbered
from processes import wait_for

pytestmark = pytest.mark.integration

Pipe = subprocess.Popen[bytes]
MakePipe = Callable[..., Pipe]


@pytest.fixture
def pipe(topic: Topic, tmp_path: Path) -> Iterator[MakePipe]:
    """`pipe()` starts `midwatch ship -` with both ends open, and a spool below the test's folder."""
    made: list[Pipe] = []

    def make(*arguments: str, before: Sequence[str] = (), **environment: str) -> Pipe:
        argv = [*before, sys.executable, "-m", "midwatch", "ship", "--job", "run", "--node", "node1"]
        argv += ["--set=ship.interval=0.3s", f"--state-directory={tmp_path / 'state'}", *arguments, "-"]
        known = os.environ | topic.environment() | {"TMPDIR": str(tmp_path)} | environment
        made.append(
            subprocess.Popen(
                argv, env=known, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
        return made[-1]

    yield make
    for one in made:
        if one.poll() is None:
            one.kill()
            one.wait()


def write(pipe: Pipe, data: bytes) -> None:
    assert pipe.stdin is not None
    pipe.stdin.write(data)
    pipe.stdin.flush()


def read(pipe: Pipe, size: int) -> bytes:
    assert pipe.stdout is not None
    return pipe.stdout.read(size)


def line_said(pipe: Pipe) -> bytes:
    assert pipe.stderr is not None
    assert select.select([pipe.stderr], [], [], 40)[0], "nothing was said"
    return pipe.stderr.readline()


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] + [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        if task.name != str(pid)
        for child in (task / "children").read_text().split()
    ]


@pytest.mark.capability("C-1")
def test_the_output_passes_unchanged_and_its_copy_arrives(
    topic: Topic, pipe: MakePipe, tmp_path: Path
) -> None:
    raw = "".join(f"{line}\n" for line in numbered(0, 30_000)).encode() + b"\x1b[31mred\x1b[0m\r\nthe end"
    passed, said = pipe().communicate(raw, timeout=60)
    assert passed == raw
    assert said == b""
    topic.wait_for_lines({*numbered(0, 30_000), "red", "the end"})
    assert [line.text for line in topic.lines] == [*numbered(0, 30_000), "red", "the end"]
    wait_for(lambda: any(beat.final for beat in topic.read().beats), "the final beat")
    assert not list(tmp_path.glob("midwatch-spool-*"))


def test_each_byte_passes_at_once(pipe: MakePipe) -> None:
    running = pipe()
    write(running, b"Pass")
    assert read(running, 4) == b"Pass"
    write(running, b"word? ")
    assert read(running, 6) == b"word? "


def test_without_a_kafka_the_training_neither_waits_nor_fails(pipe: MakePipe) -> None:
    running = pipe("--drain=1", MIDWATCH_KAFKA__BOOTSTRAP="127.0.0.1:9")
    raw, told = b"x" * 99 + b"\n", b""
    with ThreadPoolExecutor(1) as training:
        writing = training.submit(write, running, raw * 100_000)
        assert read(running, len(raw) * 100_000) == raw * 100_000, "it does not wait for its copy"
        writing.result()
    # The end of the output starts the clock of --drain: on a busy machine it runs out before the first try.
    while b"127.0.0.1:9 cannot be used" not in told:
        told += line_said(running)
    passed, said = running.communicate(timeout=60)
    assert passed == b""
    assert running.returncode == 0
    assert b"the rest is in" in told + said


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(["--set=ship.no_such=1"], {}), ([], {"MIDWATCH_JOB_PID": "x"}), (["--config=/no/such/file"], {})],
)
def test_a_mistake_in_the_settings_stops_no_training(
    pipe: MakePipe, arguments: list[str], environment: dict[str, str]
) -> None:
    running = pipe(*arguments, **environment)
    passed, said = running.communicate(b"step 1\n", timeout=30)
    assert (passed, running.returncode) == (b"step 1\n", 0)
    assert b"nothing is shipped" in said


def test_a_killed_shipping_process_costs_nothing(topic: Topic, pipe: MakePipe) -> None:
    running = pipe()
    lines = numbered(0, 400)
    for i, line in enumerate(lines):
        write(running, f"{line}\n".encode())
        if i % 100 == 50:
            topic.wait_for_lines(set(lines[: i - 10]))
            (child,) = children(running.pid)
            os.kill(child, signal.SIGKILL)
    passed, _ = running.communicate(timeout=40)
    assert passed.decode().splitlines() == lines
    assert running.returncode == 0
    topic.wait_for_lines(set(lines))
    assert len(set(topic.lines)) == len(lines)


def test_a_crash_loop_of_the_shipping_process_is_not_the_trainings(pipe: MakePipe) -> None:
    running = pipe("--drain=1", MIDWATCH_FAILPOINT="child")
    write(running, b"step 1\n" * 1000)
    assert b"the shipping process ended with status -9" in line_said(running)
    passed, _ = running.communicate(b"step 2\n" * 1000, timeout=40)
    assert (passed, running.returncode) == (b"step 1\n" * 1000 + b"step 2\n" * 1000, 0)


def test_a_full_disk_is_not_the_trainings_either(pipe: MakePipe) -> None:
    running = pipe("--drain=1", before=["sh", "-c", 'ulimit -f 0; exec "$@"', "sh"])
    raw = b"".join(f"{line}\n".encode() for line in numbered(0, 400_000))
    began = time.monotonic()
    passed, said = running.communicate(raw, timeout=60)
    assert passed == raw
    assert running.returncode == 0
    assert b"the disk of the spool is full" in said
    assert b"the oldest copies are dropped" in said
    assert time.monotonic() - began < 30


def test_a_reader_that_leaves_does_not_end_the_training(topic: Topic, pipe: MakePipe) -> None:
    running = pipe()
    assert running.stdout is not None
    running.stdout.close()
    for line in numbered(0, 100):
        write(running, f"{line}\n".encode())
    assert running.stdin is not None
    running.stdin.close()
    assert running.wait(30) == 0
    topic.wait_for_lines(set(numbered(0, 100)))


def test_a_signal_to_the_whole_job_does_not_cut_off_its_last_words(topic: Topic, pipe: MakePipe) -> None:
    running = pipe()
    write(running, b"step 1\n")
    topic.wait_for_lines({"step 1"})
    running.send_signal(signal.SIGTERM)
    running.send_signal(signal.SIGINT)
    write(running, b"caught SIGTERM, saving\n")
    passed, _ = running.communicate(timeout=30)
    assert passed == b"step 1\ncaught SIGTERM, saving\n"
    topic.wait_for_lines({"step 1", "caught SIGTERM, saving"})
