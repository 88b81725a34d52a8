"""The checkpoint: whole or not at all, and of one shipper at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.shippers.files.fingerprint import Probe
from midwatch.shippers.files.sent_positions import Remembered, SentPositions, ShipperDirectory
from midwatch.shippers.files.tail import FilePosition
from midwatch.streams.errors import ConfigurationError, UsageError
from midwatch.streams.records import Generation

FILE = Remembered("/x/train.log", Generation(1, 2, "f", 1), FilePosition(10, 3, within=True), Probe(7, 5), 99)


def test_what_was_saved_is_there_after_a_restart(tmp_path: Path) -> None:
    first = ShipperDirectory(tmp_path / "state")
    assert first.load() == SentPositions()
    first.save(SentPositions((FILE,), "local:1:2", "boot"))
    first.close()
    assert ShipperDirectory(tmp_path / "state").load() == SentPositions((FILE,), "local:1:2", "boot")


def test_two_shippers_of_one_job_and_node_are_refused(tmp_path: Path) -> None:
    first = ShipperDirectory(tmp_path)
    with pytest.raises(UsageError, match="another shipper"):
        ShipperDirectory(tmp_path)
    first.close()
    ShipperDirectory(tmp_path).close()


@pytest.mark.parametrize("content", [b"", b"{", b'{"files": 3}', b'{"version": 99}'])
def test_a_broken_checkpoint_is_refused_with_the_remedy(tmp_path: Path, content: bytes) -> None:
    state = ShipperDirectory(tmp_path)
    (tmp_path / "checkpoint.json").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"checkpoint\.json.*\n.*remove it"):
        state.load()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        ShipperDirectory(tmp_path / "file" / "state")
