"""A server's last words become something that a person can act on."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.agents.local.embedded.errors import (
    DiskFull,
    EmbeddedStackError,
    NotWritable,
    PortTaken,
    ServerFailed,
    StateDirectoryDamaged,
    StateDirectoryInUse,
    StateDirectoryNewer,
)
from midwatch.agents.local.embedded.process.reasons import failure, last_start

LOG = Path("state/logs/kafka.log")

# Lines of the form that Kafka, Java, Redis and Valkey print, written for these tests.
CASES = [
    ("java.net.BindException: Address already in use", PortTaken),
    (
        "Warning: Could not create server TCP listening socket 127.0.0.1:20001: bind: Address already in use",
        PortTaken,
    ),
    (
        "KafkaException: Failed to acquire lock on file .lock in data. Another broker uses it",
        StateDirectoryInUse,
    ),
    ("java.io.IOException: No space left on device", DiskFull),
    ("java.lang.InternalError: a fault occurred in an unsafe memory access operation", DiskFull),
    ("java.nio.file.FileSystemException: data/x.log: Read-only file system", NotWritable),
    ("Can't open the append-only file: Permission denied", NotWritable),
    ("UnsupportedVersionException: Can't read version 9 of BrokerEndpoint", StateDirectoryNewer),
    ("Can't handle RDB format version 99", StateDirectoryNewer),
    (
        "RuntimeException: Invalid cluster.id in: data/meta.properties. Expected a, but read b",
        StateDirectoryDamaged,
    ),
    ("Bad file format reading the append only file: make a backup first", StateDirectoryDamaged),
    ("The AOF file appendonly.aof.7.incr.aof doesn't exist", StateDirectoryDamaged),
    ("UnsupportedClassVersionError: kafka/Kafka has been compiled by a more recent version", ServerFailed),
    ("java.lang.NoClassDefFoundError: org/example/Absent", ServerFailed),
    ("Error occurred during initialization of VM: Could not reserve enough space for heap", ServerFailed),
]


@pytest.mark.parametrize(("line", "error"), CASES)
def test_a_known_reason_is_named_with_its_remedy(line: str, error: type[EmbeddedStackError]) -> None:
    text = f"=== start today java\nsome warning\n{line}\n\tat org.example.Main(Main.java:1)\n"
    found = failure("Kafka", text, exit_status=1, log=LOG)
    assert type(found) is error
    assert "last words" not in found.what
    assert found.remedy
    assert found.where == str(LOG)


def test_an_unknown_reason_shows_the_last_words_without_stack_frames() -> None:
    text = "=== start today java\none\ntwo\nthree\nfour\nfive: it broke\n\tat org.example.Main(Main.java:1)\n"
    found = failure("Kafka", text, exit_status=1, log=LOG)
    assert "five: it broke" in found.what
    assert "\n    one" not in found.what
    assert "Main.java" not in str(found)


def test_a_server_that_said_nothing_still_has_an_exit_status() -> None:
    found = failure("Redis", "=== start today valkey-server\n", exit_status=139, log=LOG)
    assert "exit 139" in found.what
    assert "nothing" in found.what


def test_a_full_disk_is_named_even_if_the_log_had_no_room_to_say_it() -> None:
    assert type(failure("Kafka", "=== start\n", exit_status=1, log=LOG, free=4096)) is DiskFull


def test_what_an_earlier_start_said_is_no_reason_for_this_one() -> None:
    text = "=== start one\nAddress already in use\n=== start two\nfine\n"
    assert last_start(text) == "=== start two\nfine\n"
    assert last_start("rotated away\n") == "rotated away\n"
