"""Only the jars of the lock are ever used."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from midwatch.agents.local.embedded.errors import JarMissing, WrongChecksum
from midwatch.agents.local.embedded.kafka.jars import (
    Jar,
    given_jars,
    kafka_version,
    locked_jars,
    matches,
    parse_lock,
)


def jar_of(content: bytes, artifact: str = "toy") -> Jar:
    return Jar("org.example", artifact, "1.2", hashlib.sha256(content).hexdigest(), len(content))


def test_the_lock_names_a_whole_broker_with_a_digest_for_each_jar() -> None:
    jars = locked_jars()
    assert kafka_version(jars) == "4.3.1"
    assert {"kafka_2.13", "kafka-clients", "scala-library", "slf4j-simple", "zstd-jni"} <= {
        jar.artifact for jar in jars
    }
    assert all(len(bytes.fromhex(jar.sha256)) == 32 and jar.size > 0 for jar in jars)
    assert len({jar.file_name for jar in jars}) == len(jars)


def test_the_lock_holds_no_address() -> None:
    lock = Path(str(locked_jars.__code__.co_filename)).with_name("jars.lock").read_text(encoding="utf-8")
    assert "://" not in lock


def test_the_class_path_has_one_order_whatever_the_order_of_the_rows() -> None:
    rows = [f"{'0' * 64} 1 g:b:1", f"{'0' * 64} 1 z:a:1", "# a remark", ""]
    assert parse_lock("\n".join(rows)) == parse_lock("\n".join(reversed(rows)))


def test_a_jar_lies_where_maven_repositories_keep_it() -> None:
    jar = Jar("org.apache.kafka", "kafka_2.13", "4.3.1", "", 0)
    assert jar.repository_path == "org/apache/kafka/kafka_2.13/4.3.1/kafka_2.13-4.3.1.jar"


@pytest.mark.parametrize("content", [b"sane", b"same length", b""])
def test_a_file_with_other_content_is_another_jar(tmp_path: Path, content: bytes) -> None:
    jar = jar_of(b"good")
    file = tmp_path / jar.file_name
    file.write_bytes(content)
    assert not matches(jar, file)
    file.write_bytes(b"good")
    assert matches(jar, file)


def test_a_directory_of_jars_is_used_as_it_is(tmp_path: Path) -> None:
    jars = [jar_of(b"one", "a"), jar_of(b"two", "b")]
    (tmp_path / "a-1.2.jar").write_bytes(b"one")
    (tmp_path / "b-1.2.jar").write_bytes(b"two")
    assert given_jars(jars, tmp_path) == (tmp_path / "a-1.2.jar", tmp_path / "b-1.2.jar")


def test_a_directory_that_lacks_jars_names_them(tmp_path: Path) -> None:
    jars = [jar_of(b"x", f"part{n}") for n in range(7)]
    (tmp_path / "part0-1.2.jar").write_bytes(b"x")
    with pytest.raises(JarMissing) as caught:
        given_jars(jars, tmp_path)
    assert "6 of 7" in caught.value.what
    assert "org.example:part1:1.2" in caught.value.what
    assert "1 more" in caught.value.what
    assert caught.value.where == str(tmp_path)
    assert "--jars" in caught.value.remedy


def test_a_directory_with_a_changed_jar_is_refused(tmp_path: Path) -> None:
    jar = jar_of(b"good")
    (tmp_path / jar.file_name).write_bytes(b"evil")
    with pytest.raises(WrongChecksum) as caught:
        given_jars([jar], tmp_path)
    assert caught.value.where == str(tmp_path / jar.file_name)
    assert jar.sha256 in caught.value.what
