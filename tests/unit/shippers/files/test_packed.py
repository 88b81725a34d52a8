"""Logs that were rotated and packed while no shipper read them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from midwatch.shippers.files import packed
from midwatch.shippers.files.sent_positions import Remembered
from unit.shippers.files.test_followed import append
from unit.shippers.reading import Reader


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


def rotate(log: Path, name: str, pack: Callable[[bytes], bytes] = gzip.compress, *, age: int = 0) -> Path:
    """What logrotate with `compress` leaves: the packed copy with the file's time, and the file is gone."""
    made = log.with_name(name)
    made.write_bytes(pack(log.read_bytes()))
    written = log.stat().st_mtime_ns - age
    os.utime(made, ns=(written, written))
    log.unlink()
    return made


def read_once(log: Path, *, later: tuple[str, ...] = ()) -> tuple[Remembered, ...]:
    """A shipper that reads the log and dies; then the job writes on."""
    reader = Reader(log)
    reader.look()
    remembered = reader.stop()
    append(log, *later)
    return remembered


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_the_unread_rest_of_a_packed_log_comes_before_the_new_log(
    log: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    append(log, "one", "two")
    remembered = read_once(log, later=("three", "last"))
    rotate(log, f"train.log.1{ending}", pack)
    append(log, "new")
    reader = Reader(log, remembered=remembered)
    assert reader.look(flush=True) == ["three", "last", "new"]
    assert [(offset, number) for _, offset, number, _ in reader.seen][:2] == [(8, 3), (14, 4)]
    assert not reader.said
    assert reader.look() == []


def test_all_rotations_of_the_time_without_a_shipper_are_read_in_their_order(log: Path) -> None:
    append(log, "one")
    remembered = read_once(log, later=("two",))
    rotate(log, "train.log.3.gz", age=-1)
    append(log, "three")
    rotate(log, "train.log.2.gz", age=-2)
    append(log, "four")
    log.rename(log.with_name("train.log.1"))
    append(log, "five")
    assert Reader(log, remembered=remembered).look() == ["two", "three", "four", "five"]


def test_a_shipper_that_dies_within_a_packed_log_goes_on_there(log: Path) -> None:
    append(log, "one")
    remembered = read_once(log, later=("two", "three"))
    rotate(log, "train.log.1.gz")
    append(log, "four")
    first = Reader(log, remembered=remembered)
    first.look(acknowledge=False)
    assert Reader(log, remembered=first.stop()).look() == ["two", "three", "four"]
    second = Reader(log, remembered=remembered)
    assert second.look() == ["two", "three", "four"]
    assert Reader(log, remembered=second.stop()).look() == [], "nothing comes twice"


def test_what_was_packed_before_the_shipper_knew_the_log_is_old(log: Path) -> None:
    append(log, "of last week")
    os.utime(log, (1.0, 1.0))
    rotate(log, "train.log.2.gz")
    append(log, "one")
    remembered = read_once(log, later=("two",))
    rotate(log, "train.log.1.gz")
    assert Reader(log, remembered=remembered).look() == ["two"]


@pytest.mark.parametrize("damage", ["cut", "other", "too long"])
def test_a_rest_that_cannot_be_read_is_said_with_its_remedy(
    log: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, "one")
    remembered = read_once(log, later=("two",))
    made = rotate(log, "train.log.1.gz")
    written = made.stat().st_mtime_ns
    match damage:
        case "cut":
            made.write_bytes(made.read_bytes()[:-6])
        case "other":
            made.write_bytes(gzip.compress(b"another\n"))
        case _:
            monkeypatch.setattr(packed, "MOST_BYTES", 4)
    os.utime(made, ns=(written - 1, written - 1))
    reader = Reader(log, remembered=remembered)
    assert reader.look() == (["another"] if damage == "other" else [])
    assert "is gone" in reader.said[-1]
    assert "delaycompress" in reader.said[-1]
