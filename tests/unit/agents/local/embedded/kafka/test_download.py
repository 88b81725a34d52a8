"""What lacks in the cache is downloaded and checked; what goes wrong is said with its remedy."""

from __future__ import annotations

import builtins
import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from midwatch.agents.local.embedded.errors import (
    EmbeddedStackError,
    ExtraMissing,
    JarMissing,
    NotWritable,
    RepositoryUnreachable,
    WrongChecksum,
)
from midwatch.agents.local.embedded.kafka.download import cached_jars, repository_address
from midwatch.agents.local.embedded.kafka.jars import Jar
from midwatch.agents.local.embedded.kafka.progress import DownloadProgress

from .repository import Repository, serving

CONTENTS = {f"part{n}": f"content of {n} ".encode() * 20_000 for n in range(8)}
JARS = [
    Jar("org.example.parts", name, "1.0", hashlib.sha256(content).hexdigest(), len(content))
    for name, content in CONTENTS.items()
]
QUICK = (0.01, 0.01)


def seen(_progress: DownloadProgress) -> None:
    """A listener for tests that do not look at progress."""


@pytest.fixture
def repository() -> Iterator[Repository]:
    with serving() as repository:
        repository.files = {f"/base/{jar.repository_path}": CONTENTS[jar.artifact] for jar in JARS}
        yield repository


def get(cache: Path, mirror: str, **more: Any) -> tuple[Path, ...]:
    return cached_jars(JARS, cache, mirror=mirror, pauses=QUICK, **{"progress": seen} | more)


def left_over(cache: Path) -> list[str]:
    return sorted(file.name for file in (cache / "jars").iterdir())


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/base"


def test_all_jars_come_into_the_cache_and_stay_there(tmp_path: Path, repository: Repository) -> None:
    paths = get(tmp_path, repository.address)
    assert [path.read_bytes() for path in paths] == list(CONTENTS.values())
    repository.asked.clear()
    assert get(tmp_path, closed_port()) == paths
    assert repository.asked == []


def test_a_damaged_jar_in_the_cache_is_fetched_again_and_only_that_one(
    tmp_path: Path, repository: Repository
) -> None:
    paths = get(tmp_path, repository.address)
    good = paths[3].read_bytes()
    paths[3].write_bytes(b"?" + good[1:])
    repository.asked.clear()
    get(tmp_path, repository.address)
    assert paths[3].read_bytes() == good
    assert repository.asked == [f"/base/{JARS[3].repository_path}"]


def test_progress_counts_every_byte_once_even_after_a_cut_connection(
    tmp_path: Path, repository: Repository
) -> None:
    repository.cut = {f"/base/{JARS[0].repository_path}"}
    told: list[DownloadProgress] = []
    get(tmp_path, repository.address, progress=told.append)
    total = sum(jar.size for jar in JARS)
    assert told[-1].done == told[-1].total == total
    assert "8 Kafka jars" in told[0].what


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_error_is_tried_again(tmp_path: Path, repository: Repository, status: int) -> None:
    repository.failures = [status]
    assert len(get(tmp_path, repository.address)) == len(JARS)


def test_without_a_network_and_with_an_empty_cache_the_ways_out_are_named(tmp_path: Path) -> None:
    mirror = closed_port()
    with pytest.raises(RepositoryUnreachable) as caught:
        get(tmp_path, mirror)
    assert caught.value.where.startswith(mirror)
    assert "refused" in caught.value.what
    for way in ("--maven-mirror", "MIDWATCH_MAVEN_REPOSITORY", "--jars"):
        assert way in caught.value.remedy
    assert caught.value.exit_code == 4
    assert left_over(tmp_path) == []


def test_a_jar_with_another_checksum_is_not_kept(tmp_path: Path, repository: Repository) -> None:
    jar = JARS[5]
    repository.files[f"/base/{jar.repository_path}"] = b"!" * jar.size
    with pytest.raises(WrongChecksum) as caught:
        get(tmp_path, repository.address)
    assert jar.coordinates in caught.value.what
    assert jar.sha256 in caught.value.what
    assert hashlib.sha256(b"!" * jar.size).hexdigest() in caught.value.what
    assert "--jars" in caught.value.remedy
    assert jar.file_name not in left_over(tmp_path)
    assert not [name for name in left_over(tmp_path) if name.endswith(".part")]


@pytest.mark.parametrize("content", [b"", b"<html>log in first</html>", b"x" * 10_000_000])
def test_a_page_in_place_of_a_jar_is_not_kept(tmp_path: Path, repository: Repository, content: bytes) -> None:
    repository.files[f"/base/{JARS[0].repository_path}"] = content
    with pytest.raises(WrongChecksum):
        get(tmp_path, repository.address)
    assert JARS[0].file_name not in left_over(tmp_path)


def test_a_repository_without_the_jar_is_named_with_its_answer(
    tmp_path: Path, repository: Repository
) -> None:
    del repository.files[f"/base/{JARS[2].repository_path}"]
    with pytest.raises(JarMissing) as caught:
        get(tmp_path, repository.address)
    assert "404" in caught.value.what
    assert JARS[2].coordinates in caught.value.what
    assert caught.value.where == f"{repository.address}/{JARS[2].repository_path}"


def test_the_password_of_a_mirror_is_never_shown(tmp_path: Path, repository: Repository) -> None:
    repository.files = {}
    with pytest.raises(EmbeddedStackError) as caught:
        get(tmp_path, repository.address.replace("//", "//us:hunter2@"))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["ftp://u:hunter2@host/m2", "repository.example/m2", "http://", "http://mirror:port"]
)
def test_an_address_that_is_none_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(RepositoryUnreachable) as caught:
        get(tmp_path, address)
    assert "http" in caught.value.what
    assert "hunter2" not in str(caught.value)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, repository: Repository) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotWritable) as caught:
        get(tmp_path / "file", repository.address)
    assert "MIDWATCH_CACHE" in caught.value.remedy


def test_the_mirror_that_was_asked_for_wins_over_the_variable_and_that_over_the_public_one() -> None:
    variable = {"MIDWATCH_MAVEN_REPOSITORY": "https://mirror.example/m2/"}
    assert repository_address("https://asked.example", variable) == "https://asked.example"
    assert repository_address(None, variable) == "https://mirror.example/m2"
    assert repository_address(None, {}).startswith("https://")


@pytest.mark.parametrize("package", ["jgo", "httpx"])
def test_without_the_extra_its_name_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ExtraMissing) as caught:
        cached_jars(JARS, tmp_path, environment={}, progress=seen)
    assert "midwatch[embedded]" in caught.value.remedy
