"""`midwatch replay` of packed logs, of damaged ones, and of files that are no logs."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import random
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner, Result

from midwatch.agents.cli.ask.replay import replay
from midwatch.agents.replay.reading.archives import LogReader
from midwatch.agents.replay.reading.log_files import LogFile, as_printed
from midwatch.rules.prefilter.workloads import noise
from midwatch.streams.errors import ConfigurationError, UsageError

Pack = Callable[[bytes], bytes]
PACKS: dict[str, Pack] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
LOG = noise(300_000) + b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


def _replay(*names: str | Path, stdin: bytes | None = None) -> Result:
    arguments = [*map(str, names), "--json", "--job", "j"]
    return CliRunner().invoke(replay, arguments, standalone_mode=False, input=stdin)


def _answer(result: Result) -> dict[str, Any]:
    assert result.exception is None, result.exception
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def _plain(answer: dict[str, Any]) -> str:
    return json.dumps(answer).replace("train.log.gz", "train.log")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "train.log"
    file.write_bytes(LOG)
    os.utime(file, (1e9, 1e9))
    return file


@pytest.mark.parametrize("ending", PACKS)
def test_a_packed_log_gives_the_same_answer(log: Path, ending: str) -> None:
    packed = log.with_name(f"train.log.{ending}")
    packed.write_bytes(PACKS[ending](LOG))
    os.utime(packed, (1e9, 1e9))
    expected = json.dumps(_answer(_replay(log))).replace("train.log", packed.name)
    assert json.dumps(_answer(_replay(packed))) == expected
    assert "oom" in expected


@pytest.mark.parametrize("ending", PACKS)
def test_several_members_are_one_log_whatever_its_name_says(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "log"
    half = len(LOG) // 2
    file.write_bytes(PACKS[ending](LOG[:half]) + PACKS[ending](LOG[half:]))
    with LogReader(file) as reader:
        assert reader.read(len(LOG) * 2) == LOG
        assert reader.damage == ""
    number = LOG.count(b"\n")
    last = LOG.splitlines()[-1].decode()
    assert as_printed(LogFile("log", file, 0.0), number, last) == last


@pytest.mark.parametrize("ending", PACKS)
@pytest.mark.parametrize("kept", [0.6, 0.95])
def test_of_a_cut_archive_the_lines_up_to_there_count(tmp_path: Path, ending: str, kept: float) -> None:
    file = tmp_path / "train.log"
    packed = PACKS[ending](LOG * 8)
    file.write_bytes(packed[: int(len(packed) * kept)])
    answer = _answer(_replay(file))
    (note,) = [line for line in answer["assumed"] if "archive is" in line]
    assert note.startswith(f"{file}: the ")
    assert note.endswith("archive is cut off; its lines up to there count")


@pytest.mark.parametrize("ending", PACKS)
def test_a_cut_archive_without_a_failure_is_not_called_healthy(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "train.log"
    chance = random.Random(7)
    steps = "".join(
        f"step {n} loss {chance.random():.6f}\n" for n in range(1, 60_000)
    ).encode()  # bzip2 packs 900 kB at once
    whole = PACKS[ending](steps)
    file.write_bytes(whole)
    assert _answer(_replay(file))["verdict"]["state"] == "healthy"
    file.write_bytes(whole[: len(whole) - 2000])
    answer = _answer(_replay(file))
    assert answer["verdict"]["state"] == "unknown"
    assert answer["decision"]["action"] == "none"
    assert answer["decision"]["reason"] == "the log holds no failure up to where it is cut off or damaged"


@pytest.mark.parametrize("ending", PACKS)
def test_a_damaged_archive_is_named(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "train.log"
    packed = bytearray(PACKS[ending](LOG * 8))
    place = len(packed) * 3 // 4
    packed[place : place + 52] = bytes(range(52))
    file.write_bytes(packed)
    assert any("archive is damaged; its lines" in line for line in _answer(_replay(file))["assumed"])


@pytest.mark.parametrize("ending", PACKS)
def test_an_archive_without_a_readable_beginning_is_an_error(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "train.log"
    file.write_bytes(PACKS[ending](LOG)[:5])
    error = _replay(file).exception
    assert isinstance(error, UsageError)
    assert error.what.startswith("nothing in it can be read: the ")


def test_a_zstd_log_without_its_package_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    file = tmp_path / "train.log"
    file.write_bytes(PACKS["zst"](LOG))
    error = _replay(file).exception
    assert isinstance(error, ConfigurationError)
    assert error.exit_code == 3
    assert "pip install zstandard" in error.remedy


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.log")
        member.size = len(LOG)
        archive.addfile(member, io.BytesIO(LOG))
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "named", "remedy"),
    [
        (bytes(range(256)) * 64, "binary data", "give a text file"),
        (b"PK\x03\x04" + bytes(range(256)) * 8, "a zip archive", "unpack it"),
        (b"\x7fELF" + bytes(400), "a program", "give a log"),
        ("line\n".encode("utf-16") * 40, "text in UTF-16", "iconv"),
        (b"a\0b\0" * 500, "binary data", "give a text file"),
        (_tar(), "a tar archive", "unpack it"),
    ],
)
def test_a_file_that_is_no_text_is_named_and_not_read(
    tmp_path: Path, content: bytes, named: str, remedy: str
) -> None:
    file = tmp_path / "model.pt"
    file.write_bytes(content)
    error = _replay(file).exception
    assert isinstance(error, UsageError)
    assert error.what == f"this is no log but {named}"
    assert error.where == str(file)
    assert remedy in error.remedy


def test_in_a_directory_such_a_file_is_left_out_with_a_note(log: Path) -> None:
    expected = _answer(_replay(log))
    (log.parent / "model.pt").write_bytes(bytes(range(256)) * 64)
    result = _replay(log.parent)
    assert _answer(result)["verdict"] == expected["verdict"]
    assert f"{log.parent}/model.pt: binary data, left out" in result.stderr


def test_a_hole_that_a_crash_left_does_not_make_a_log_binary(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    file.write_bytes(LOG[:20_000] + bytes(30_000) + LOG[20_000:])
    assert _answer(_replay(file))["verdict"]["error_type"] == "oom"


def test_a_packed_log_comes_from_standard_input_too() -> None:
    assert _answer(_replay("-", stdin=gzip.compress(LOG)))["verdict"]["error_type"] == "oom"
