"""`midwatch ship -- COMMAND`: the command runs as if nothing stood around it, and its end is in Kafka."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic

from house.parts import Require
from integration.shippers.shipping import Topic
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Heartbeat, SchedulerFact
from midwatch.streams.records.codec import decode
from processes import alive, wait_for

pytestmark = pytest.mark.integration

Process = subprocess.Popen[bytes]
Ship = Callable[..., Process]
NOWHERE = "127.0.0.1:9"
TRAPS = """
import signal, sys, time
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
    signal.signal(number, lambda n, _: print(signal.Signals(n).name, flush=True))
print("ready", flush=True)
while True:
    time.sleep(0.05)  # between two signals nothing is to be done
"""


class Facts:
    """What came to the topic `events` of a test."""

    def __init__(self, stack: Endpoints, prefix: str) -> None:
        client = {
            "bootstrap_servers": stack.kafka,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": stack.kafka_username,
            "sasl_plain_password": stack.kafka_password,
        }
        admin = KafkaAdminClient(**client)
        admin.create_topics([NewTopic(f"{prefix}.events", num_partitions=1, replication_factor=1)])
        admin.close()
        self._consumer = KafkaConsumer(auto_offset_reset="earliest", **client)
        self._consumer.assign([TopicPartition(f"{prefix}.events", 0)])
        self.seen: list[SchedulerFact] = []

    def read(self) -> list[SchedulerFact]:
        for messages in self._consumer.poll(timeout_ms=200).values():
            for message in messages:
                fact = decode(message.value)
                assert isinstance(fact, SchedulerFact)
                assert message.key == fact.job.encode()
                self.seen.append(fact)
        return self.seen

    def first(self, count: int = 1) -> list[SchedulerFact]:
        wait_for(lambda: len(self.read()) >= count, f"{count} facts of ends")
        return self.seen

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def facts(topic: Topic, stack: Endpoints) -> Iterator[Facts]:
    made = Facts(stack, topic.prefix)
    yield made
    made.close()


@pytest.fixture
def ship(topic: Topic, tmp_path: Path) -> Iterator[Ship]:
    """`ship("sh", "-c", ...)` starts `midwatch ship -- sh -c ...` as a container would, with one state."""
    made: list[Process] = []

    def make(
        *command: str, before: Sequence[str] = (), options: Sequence[str] = (), **variables: str
    ) -> Process:
        argv = [*before, sys.executable, "-m", "midwatch", "ship", "--job=run", "--node=node1"]
        argv += [f"--state-directory={tmp_path / 'state'}", "--set=ship.interval=0.3s", *options]
        known = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        made.append(
            subprocess.Popen(
                [*argv, "--", *command],
                env=known | topic.environment() | variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
        return made[-1]

    yield make
    for one in made:
        if one.poll() is None:
            one.kill()
            one.wait()


def line(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def unsent(folder: Path) -> list[Path]:
    return list((folder / "state" / "unsent").glob("*"))


@pytest.mark.capability("C-1")
def test_output_exit_code_and_end_of_the_command_arrive(
    topic: Topic, facts: Facts, ship: Ship, tmp_path: Path
) -> None:
    """All of it was delivered when `ship` ended: nothing of it lies in the state directory."""
    began = time.time()
    process = ship("sh", "-c", "echo step 1; echo a warning >&2; printf 'the end'; exit 3")
    output, said = process.communicate(timeout=60)
    assert (process.returncode, output, said) == (3, b"step 1\na warning\nthe end", b"")
    assert unsent(tmp_path) == []
    topic.wait_for_lines({"step 1", "a warning", "the end"})
    wait_for(lambda: any(beat.final for beat in topic.read().beats), "the final heartbeat")
    (fact,) = facts.first()
    assert (fact.ended, fact.new, fact.mode, fact.exit_code, fact.signal) == (
        True,
        "FAILED",
        "crash",
        3,
        None,
    )
    assert {beat.origin.incarnation for beat in topic.beats} == {fact.incarnation}
    assert fact.job == topic.beats[0].origin.job
    moment = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(began))
    assert moment[:13] in fact.reason


@pytest.mark.capability("C-1")
def test_signals_reach_the_command_and_its_death_by_one_is_ours(facts: Facts, ship: Ship) -> None:
    process = ship(sys.executable, "-c", TRAPS)
    assert line(process) == "ready"
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
        process.send_signal(number)
        assert line(process) == number.name
    process.terminate()
    assert process.wait(40) == 128 + signal.SIGTERM
    (fact,) = facts.first()
    assert (fact.new, fact.signal, fact.error_type, fact.by_person) == (
        "CANCELLED",
        15,
        "cancelled",
        "somebody",
    )


@pytest.mark.capability("C-1")
def test_a_command_killed_from_elsewhere_failed(facts: Facts, ship: Ship) -> None:
    """As by the kernel for want of memory: nobody asked us for an end, so it is no cancel."""
    process = ship("sh", "-c", "kill -9 $$")
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL
    (fact,) = facts.first()
    assert (fact.new, fact.mode, fact.signal, fact.exit_code) == ("FAILED", "crash", 9, None)


@pytest.mark.capability("C-1")
def test_without_a_kafka_the_command_neither_waits_nor_fails_and_the_next_start_sends_it_all(
    topic: Topic, facts: Facts, ship: Ship, tmp_path: Path
) -> None:
    """5 MB pass while Kafka is away. What the first start could not send comes before the second start's."""
    many = f"{sys.executable} -c \"print(('x' * 99 + chr(10)) * 50000, end='')\"; echo first; exit 4"
    away = ship("sh", "-c", many, options=["--drain=1"], MIDWATCH_KAFKA__BOOTSTRAP=NOWHERE)
    output, said = away.communicate(timeout=60)
    assert (away.returncode, len(output)) == (4, 5_000_006)
    assert b"the rest is in" in said
    assert len(unsent(tmp_path)) == 1

    again = ship("echo", "second")
    again.communicate(timeout=90)
    assert again.returncode == 0
    earlier, later = facts.first(2)
    assert (earlier.exit_code, later.exit_code) == (4, 0)
    topic.wait_for_lines({"x" * 99, "first", "second"})
    assert len(topic.lines) == 50_002
    order = [beat.origin.incarnation for beat in topic.beats]
    assert (order[0], order[-1]) == (earlier.incarnation, later.incarnation)
    assert unsent(tmp_path) == []


def test_the_output_of_too_many_starts_is_dropped_counted_and_said(
    topic: Topic, facts: Facts, ship: Ship, tmp_path: Path
) -> None:
    """Kafka was away for 40 starts. It keeps 32 of them, this one among them while it runs."""
    folder = tmp_path / "state" / "unsent"
    for number in range(40):
        left = folder / f"midwatch-spool-{number:02d}"
        left.mkdir(parents=True)
        (left / "0000000000000000-000000000001-0.raw").write_bytes(b"nobody knows whose\n")
    process = ship("echo", "now")
    _, said = process.communicate(timeout=60)
    assert f"the output of 9 earlier starts, {9 * 19} bytes, never reached Kafka".encode() in said
    topic.wait_for_lines({"now"})
    assert facts.first()[0].exit_code == 0
    assert {beat.samples["dropped_bytes"] for beat in topic.beats} == {9 * 19}
    assert len(unsent(tmp_path)) == 31


def test_a_killed_ship_leaves_its_lines_to_the_next_start(
    topic: Topic, facts: Facts, ship: Ship, tmp_path: Path
) -> None:
    """Its end is known to nobody then, and no fact is made up."""
    command = "echo first; exec sleep 60"
    process = ship("sh", "-c", command, options=["--drain=1"], MIDWATCH_KAFKA__BOOTSTRAP=NOWHERE)
    assert line(process) == "first"
    wait_for(lambda: list(tmp_path.glob("state/unsent/*/sender.json")), "the spool knows its job")
    wait_for(
        lambda: any(f.stat().st_size for f in tmp_path.glob("state/unsent/*/*.raw")), "the line is spooled"
    )
    process.kill()
    process.wait()
    ship("echo", "second").communicate(timeout=90)
    topic.wait_for_lines({"first", "second"})
    assert [fact.exit_code for fact in facts.first()] == [0]


def test_a_signal_ends_the_wait_for_a_kafka_that_is_away(ship: Ship, tmp_path: Path) -> None:
    """A person at a terminal need not wait; nothing is lost by it."""
    process = ship("sh", "-c", "exit 6", options=["--drain=600"], MIDWATCH_KAFKA__BOOTSTRAP=NOWHERE)
    wait_for(lambda: list(tmp_path.glob("state/unsent/*/end")), "the command has ended")
    process.terminate()
    assert process.wait(40) == 6
    assert len(unsent(tmp_path)) == 1


def test_what_is_left_of_its_process_group_ends_with_the_command(facts: Facts, ship: Ship) -> None:
    """A rank that outlived its launcher holds the output open; nobody waits for it."""
    process = ship("sh", "-c", "sleep 600 & echo $!; exit 0")
    rank = int(line(process))
    assert process.wait(40) == 0
    wait_for(lambda: not alive(rank), "the rank is gone")
    assert facts.first()[0].new == "COMPLETED"


@pytest.mark.parametrize(
    "variables",
    [{"SLURM_JOB_ID": "7"}, {"MIDWATCH_INCARNATION": "local:5:5"}, {"RAY_SUBMISSION_ID": "raysubmit_1"}],
)
def test_where_a_scheduler_knows_the_end_it_is_not_ours_to_tell(
    topic: Topic, facts: Facts, ship: Ship, variables: dict[str, str]
) -> None:
    """One command of a script is not the whole job."""
    process = ship("echo", "one step of several", **variables)
    process.communicate(timeout=60)
    assert process.returncode == 0
    topic.wait_for_lines({"one step of several"})
    assert facts.read() == []


def test_nor_is_it_the_next_starts_to_tell(topic: Topic, facts: Facts, ship: Ship) -> None:
    """It sends the lines that an earlier start of a SLURM job left, and of ends its own alone."""
    away = {"SLURM_JOB_ID": "7", "MIDWATCH_KAFKA__BOOTSTRAP": NOWHERE}
    ship("echo", "one step of several", options=["--drain=1"], **away).communicate(timeout=60)
    ship("echo", "another").communicate(timeout=60)
    topic.wait_for_lines({"one step of several", "another"})
    assert [fact.incarnation.partition(":")[0] for fact in facts.first()] == ["local"]


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [(["no-such-command"], 127, b"was not found"), (["/"], 126, b"cannot be run")],
)
def test_a_command_that_cannot_start_ends_as_in_a_shell(
    ship: Ship, command: list[str], code: int, said: bytes
) -> None:
    process = ship(*command)
    assert said in process.communicate(timeout=30)[1]
    assert process.returncode == code


def test_a_mistake_in_the_settings_stops_no_command(ship: Ship) -> None:
    process = ship("sh", "-c", "echo step 1; exit 5", options=["--set=ship.no_such=1"])
    output, said = process.communicate(timeout=30)
    assert (output, process.returncode) == (b"step 1\n", 5)
    assert b"nothing is shipped" in said


@pytest.mark.capability("C-1")
def test_as_process_1_it_passes_signals_on_and_reaps_orphans(
    facts: Facts, ship: Ship, require: Require
) -> None:
    """In a process namespace of its own, as in a container."""
    namespace = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]
    works = shutil.which("unshare") and subprocess.run([*namespace, "true"], check=False, capture_output=True)
    require(
        "process namespaces", bool(works and works.returncode == 0), "allow user namespaces: unshare -Urpf"
    )
    script = (
        "trap 'exit 9' TERM; (sh -c 'exit 0' & exec sleep 0.2) & wait; "  # the inner shell becomes an orphan
        "while grep -qs '^State:.*zombie' /proc/[0-9]*/status; do sleep 0.05; done; "
        "echo reaped; while :; do sleep 0.05; done"
    )
    process = ship("sh", "-c", script, before=namespace)
    assert line(process) == "reaped"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGTERM)
    assert process.wait(40) == 9
    (fact,) = facts.first()
    assert fact.exit_code == 9


def test_beats_say_that_the_command_lives(topic: Topic, facts: Facts, ship: Ship) -> None:
    process = ship("sh", "-c", "echo ready; exec sleep 60")
    assert line(process) == "ready"

    def lives() -> bool:
        return any(isinstance(beat, Heartbeat) and beat.alive for beat in topic.read().beats)

    wait_for(lives, "a heartbeat of a live command")
    process.send_signal(signal.SIGINT)
    assert process.wait(40) == 128 + signal.SIGINT
    assert facts.first()[0].new == "CANCELLED"
