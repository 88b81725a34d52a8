"""How a command with no settings finds what `midwatch up` runs on this machine."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.streams.errors import ConfigurationError, ServiceUnreachable
from midwatch.streams.services.connection import remove_connection, with_connection, write_connection
from midwatch.streams.settings.schema import (
    KafkaSettings,
    RedisSettings,
    Settings,
    TopicSettings,
    WatchSettings,
)
from midwatch.streams.settings.secret import Secret

PASSWORD = "canary-of-the-test"


@pytest.fixture
def running(tmp_path: Path) -> Settings:
    """What `up` runs with."""
    return Settings(
        cluster="night",
        state_directory=tmp_path / "state",
        kafka=KafkaSettings(("127.0.0.1:4242",), "midwatch", password=Secret(PASSWORD)),
        redis=RedisSettings("redis://127.0.0.1:4343/0", password=Secret(PASSWORD)),
        topics=TopicSettings("mine"),
        watch=WatchSettings("act"),
    )


def asking(running: Settings) -> Settings:
    """What another command knows: the state directory."""
    return Settings(state_directory=running.state_directory)


def test_a_command_finds_addresses_secrets_names_and_mode(running: Settings) -> None:
    write_connection(running)
    found = with_connection(asking(running))
    assert found.kafka.bootstrap == ("127.0.0.1:4242",)
    assert found.kafka.password.reveal() == found.redis.password.reveal() == PASSWORD
    assert (found.cluster, found.topics.prefix, found.armed) == ("night", "mine", True)
    assert found.sources[-1].endswith("connection.json")


def test_the_file_holds_no_password_and_is_for_its_owner_alone(running: Settings) -> None:
    file = write_connection(running)
    assert PASSWORD not in file.read_text()
    for written in running.state_directory.iterdir():
        assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_settings_of_the_command_itself_win(running: Settings) -> None:
    write_connection(running)
    own = KafkaSettings(("kafka.example:9092",))
    found = with_connection(replace(asking(running), kafka=own))
    assert found.kafka == own
    assert found.cluster == "local", "another Kafka is another installation"
    assert found.redis.url == "redis://127.0.0.1:4343/0"
    both = replace(asking(running), kafka=own, redis=RedisSettings("redis://r"))
    assert with_connection(both) == both


def test_without_a_running_up_the_error_says_to_start_it(running: Settings) -> None:
    write_connection(running)
    remove_connection(running)
    with pytest.raises(ServiceUnreachable, match="the settings name no Kafka") as caught:
        with_connection(asking(running))
    assert "midwatch up" in caught.value.remedy


def test_a_file_that_others_could_have_written_is_not_believed(running: Settings) -> None:
    write_connection(running).chmod(0o666)
    with pytest.raises(ConfigurationError, match="another user could have written"):
        with_connection(asking(running))


def test_a_broken_file_is_told_with_its_place(running: Settings) -> None:
    write_connection(running).write_text('{"kafka": {"bootstrap": ["nowhere"]}}')
    with pytest.raises(ConfigurationError, match=r"connection\.json:1:\d+: kafka\.bootstrap"):
        with_connection(asking(running))


def test_a_second_start_without_passwords_leaves_none_behind(running: Settings) -> None:
    write_connection(running)
    write_connection(replace(running, kafka=KafkaSettings(("a:1",)), redis=RedisSettings("redis://r")))
    assert [file.name for file in running.state_directory.iterdir()] == ["connection.json"]


def test_a_state_directory_that_cannot_be_written_is_told(running: Settings, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, not a directory")
    with pytest.raises(ConfigurationError, match="cannot be written") as caught:
        write_connection(running)
    assert "--state-directory" in caught.value.remedy
