"""`midwatch up` on real parts: it starts, is found, looks after its processes and ends as one."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

from embedded_stack import variables_of
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.agents.local.up.instance import instance_id
from midwatch.streams.services.connection import with_connection
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.settings.file import load_settings
from processes import alive, wait_for

from .conftest import PROCESSES, Up


def test_it_tells_where_everything_is(up: Up) -> None:
    for name in PROCESSES:
        assert up.pid_of(name)
        assert f"{up.state}/logs/{name}.log" in up.said
    assert "midwatch observes: it says what it would do" in up.said
    assert "8 topics made" in up.said
    assert stat.S_IMODE((up.state / "signing.key").stat().st_mode) == 0o600


def test_another_command_finds_it_without_settings(up: Up) -> None:
    done = up.midwatch("jobs", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"version": 1, "jobs": [], "unreadable": 0}
    doctor = up.midwatch("doctor")
    assert doctor.returncode == 0, doctor.stdout
    assert "ok       topics are as they must be" in doctor.stdout


def test_no_password_is_shown_anywhere(up: Up) -> None:
    password = (up.state / "kafka.password").read_text().strip()
    assert len(password) > 20
    command_lines = [Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in up.processes()]
    assert command_lines
    shown = [*command_lines, up.said, (up.state / "connection.json").read_text()]
    shown += [log.read_text() for log in (up.state / "logs").glob("*.log")]
    shown += [up.midwatch("doctor", "--json").stdout]
    assert not [text for text in shown if password in text]
    for file in ("kafka.password", "redis.password", "connection.json"):
        assert stat.S_IMODE((up.state / file).stat().st_mode) == 0o600


@pytest.mark.parametrize("name", PROCESSES)
def test_a_killed_process_is_started_again(up: Up, name: str) -> None:
    killed = up.pid_of(name)
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: up.pid_of(name) not in (0, killed), f"{name} is ready again", 60)
    wait_for(lambda: f"{name} is ready (pid {up.pid_of(name)})" in up.said, f"{name} is told to be ready")
    assert f"{name} ended with status 137; midwatch starts it again in 0." in up.said


def test_a_killed_worker_takes_its_own_place_in_the_group(up: Up) -> None:
    name, killed = instance_id(up.state), up.pid_of("detect")
    before = _members(up)
    assert [member["group_instance_id"] for member in before] == [name]
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: up.pid_of("detect") not in (0, killed), "detect is ready again", 60)
    after = _members(up)
    assert [member["group_instance_id"] for member in after] == [name]
    assert [member["member_id"] for member in after] != [member["member_id"] for member in before]


def _members(up: Up) -> list[dict[str, Any]]:
    """Those that the group of detect knows of, a dead one whose session has not ended included."""
    environment = {"MIDWATCH_STATE_DIRECTORY": str(up.state)}
    settings = with_connection(load_settings(None, environment=environment))
    admin = KafkaAdminClient(**kafka_options(settings))
    try:
        group = f"{settings.topics.prefix}.detect"
        return list(admin.describe_groups([group])[group]["members"])
    finally:
        admin.close()


def test_a_killed_broker_is_started_again(up: Up) -> None:
    broker = [pid for pid in up.processes() if b"kafka.Kafka" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    java = [pid for pid in broker if Path(f"/proc/{pid}/comm").read_text() == "java\n"]
    assert len(java) == 1
    os.kill(java[0], signal.SIGKILL)
    wait_for(lambda: "answers again" in up.said, "the broker is started again", 60)
    assert up.midwatch("jobs").returncode == 0
    wait_for(lambda: all(up.pid_of(name) for name in PROCESSES), "all are at work again", 60)


def test_a_second_one_in_the_same_directory_is_refused(up: Up) -> None:
    done = up.midwatch("up")
    assert done.returncode == 4
    assert f"runs already with this state directory (process {up.process.pid} on " in done.stderr
    assert up.process.poll() is None


def test_kill_9_leaves_no_process_and_the_next_one_starts(up: Up) -> None:
    """The next one ends in the test that follows."""
    running = up.processes()
    assert len(running) >= 2 * (len(PROCESSES) + 2), "each of ours and both servers, with a supervisor each"
    up.kill_and_begin_again()
    wait_for(lambda: not any(alive(pid) for pid in running), "everything of the killed one is gone", 40)
    up.await_ready()


def test_it_ends_in_good_order_and_leaves_nothing(up: Up) -> None:
    assert up.stop() == 0, up.said
    assert up.said.rstrip().endswith("stopped; all its processes have ended")
    assert up.processes() == []
    done = up.midwatch("jobs")
    assert done.returncode == 4
    assert "start `midwatch up`" in done.stderr


def test_a_broken_rule_file_is_told_with_its_line_and_stops_all(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("rules:\n  - name: broken\n    pattern: '('\n")
    one = Up(tmp_path, "--rules", "mine.yaml")
    assert one.process.wait(90) == 3
    assert "match refused to start" in one.said
    assert "mine.yaml:3" in one.said
    assert one.processes() == []


def test_given_services_are_used_and_outlive_it(stack: Endpoints, tmp_path: Path) -> None:
    one = Up(tmp_path, "--act", **variables_of(stack, TOPICS__PREFIX="given", TOPICS__PARTITIONS__LOGS="2"))
    try:
        one.await_ready()
        assert f"{stack.kafka} (given)" in one.said
        assert "midwatch acts on armed jobs" in one.said
        assert not (one.state / "kafka").exists()
        jobs = one.midwatch("jobs")
        assert jobs.returncode == 0, jobs.stderr
    finally:
        assert one.stop() == 0
    assert one.processes() == []


def test_only_one_service_given_is_an_error(stack: Endpoints, tmp_path: Path) -> None:
    given = variables_of(stack) | {"MIDWATCH_REDIS__URL": "", "MIDWATCH_REDIS__PASSWORD": ""}
    one = Up(tmp_path, **given)
    assert one.process.wait(30) == 3
    assert "kafka.bootstrap is set and redis.url is not" in one.said


def test_an_unreachable_kafka_is_exit_code_4(stack: Endpoints, tmp_path: Path) -> None:
    one = Up(tmp_path, **variables_of(stack) | {"MIDWATCH_KAFKA__BOOTSTRAP": "127.0.0.1:1"})
    assert one.process.wait(30) == 4
    assert "127.0.0.1:1: Kafka cannot be reached" in one.said
