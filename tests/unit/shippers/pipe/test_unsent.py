"""The spools that Kafka never got: their number and their size are bounded."""

from __future__ import annotations

import os
from pathlib import Path

from midwatch.shippers.pipe.unsent import (
    DroppedSpools,
    SpoolSender,
    drop_oldest,
    left_over,
    make,
    note_sender,
)
from midwatch.streams.records import Origin

ORIGIN = Origin("local:ann/run", "node1", 1, "local:7:1", "boot", "start")


def spool(directory: Path, number: int, size: int = 10, *, known: bool = True) -> Path:
    """What a start left whose process is gone; `number` is its age's rank."""
    folder = directory / f"midwatch-spool-{number:02d}"
    folder.mkdir(parents=True)
    (folder / "0000000000000000-000000000001-0.raw").write_bytes(b"x" * size)
    if known:
        note_sender(folder, SpoolSender(ORIGIN))
        os.utime(folder / "sender.json", (1000.0 + number, 1000.0 + number))
    return folder


def names(directory: Path) -> list[str]:
    return sorted(folder.name[-2:] for folder in directory.iterdir())


def test_the_oldest_spools_go_until_the_rest_is_within_the_number(tmp_path: Path) -> None:
    for number in range(5):
        spool(tmp_path, number, size=10 + number)
    assert drop_oldest(tmp_path, spools=3) == DroppedSpools(2, 10 + 11)
    assert names(tmp_path) == ["02", "03", "04"]
    assert drop_oldest(tmp_path, spools=3) == DroppedSpools()


def test_the_oldest_spools_go_until_the_rest_is_within_the_size(tmp_path: Path) -> None:
    for number, size in enumerate((10, 50, 30)):
        spool(tmp_path, number, size)
    assert drop_oldest(tmp_path, size=80) == DroppedSpools(1, 10)
    assert drop_oldest(tmp_path, size=30) == DroppedSpools(1, 50)
    assert names(tmp_path) == ["02"]


def test_a_spool_whose_sender_nobody_knows_is_never_sent_and_goes_first(tmp_path: Path) -> None:
    spool(tmp_path, 0)
    spool(tmp_path, 1, known=False)
    assert drop_oldest(tmp_path, spools=1) == DroppedSpools(1, 10)
    assert names(tmp_path) == ["00"]


def test_the_spool_of_a_start_that_lives_stays(tmp_path: Path) -> None:
    living = make(tmp_path)
    note_sender(living, SpoolSender(ORIGIN))
    os.utime(living / "sender.json", (1.0, 1.0))
    spool(tmp_path, 1)
    assert drop_oldest(tmp_path, spools=1) == DroppedSpools(1, 10)
    assert list(tmp_path.iterdir()) == [living]
    assert not list(left_over(tmp_path))


def test_there_is_nothing_to_drop_where_nothing_was_left(tmp_path: Path) -> None:
    assert drop_oldest(tmp_path / "none") == DroppedSpools()
