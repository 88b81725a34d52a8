"""Log files and identities as a sidecar meets them: what it says, and that the other files go on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bad_input.case import Case
from midwatch.shippers.files.sent_positions import SentPositions, ShipperDirectory
from midwatch.shippers.identity import IdentityArguments, Machine, identify
from midwatch.streams.errors import ConfigurationError, MidwatchError
from unit.shippers.reading import Reader

NOBODY = 65534
MACHINE = Machine("n0", "ada", "boot", "shipper", 1, 1)

IDENTITIES = (
    Case("no job at all", "nothing says which job", "", "exit code 3", {}),
    Case("a job's name with a newline", "cannot be part of a job's name", "", "exit code 3",
         {"MIDWATCH_JOB": "a\nb"}),
    Case("a node's name that would clear a terminal", "this identity does not fit a record", "",
         "exit code 3", {"MIDWATCH_JOB": "a", "MIDWATCH_NODE": "n\x1b[2J"}),
    Case("a number of nodes that is none", "'-3' is not a number of nodes", "", "exit code 3",
         {"MIDWATCH_JOB": "a", "MIDWATCH_NODES": "-3"}),
    Case("more nodes than there are", "this identity does not fit a record", "", "exit code 3",
         {"MIDWATCH_JOB": "a", "MIDWATCH_NODES": "99999999"}),
    Case("a count of restarts that is none", "'x' is not a number of restarts", "", "exit code 3",
         {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "x"}),
    Case("an incarnation that is none", "nothing says which job", "", "exit code 3",
         {"MIDWATCH_INCARNATION": "abc"}),
)  # fmt: skip


@pytest.mark.parametrize("case", IDENTITIES, ids=[case.name for case in IDENTITIES])
def test_an_identity_that_is_none_is_told_with_its_remedy_before_anything_is_shipped(case: Case) -> None:
    assert isinstance(case.value, dict)
    with pytest.raises(ConfigurationError) as caught:
        identify(IdentityArguments(), case.value, MACHINE)
    assert case.said in caught.value.what
    assert caught.value.remedy
    assert identify(IdentityArguments(job="llm"), {}, MACHINE).job == "local:ada/llm"


@contextmanager
def _as_somebody_else() -> Iterator[None]:
    """Root may read everything, so it becomes somebody who may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that everybody may enter; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_an_unreadable_file_is_told_once_makes_the_shipper_blind_and_is_read_once_it_can_be(
    shared: Path,
) -> None:
    closed, open_ = shared / "closed.log", shared / "open.log"
    closed.write_text("secret\n")
    open_.write_text("one\n")
    closed.chmod(0)
    reader = Reader(closed, open_)
    with _as_somebody_else():
        assert reader.look() == ["one"]
        assert reader.watch.blind
        reader.look()
        assert reader.said == [
            f"{closed} cannot be read: Permission denied; its lines are missing until it can be read"
        ]
    closed.chmod(0o644)
    with _as_somebody_else():
        assert reader.look() == ["secret"]
        assert not reader.watch.blind


def test_a_file_in_a_closed_directory_is_told_of_too(shared: Path) -> None:
    closed = shared / "closed"
    closed.mkdir(mode=0o700)
    (closed / "a.log").write_text("one\n")
    reader = Reader(closed / "a.log")
    with _as_somebody_else():
        assert reader.look() == []
    closed.chmod(0o755)
    if os.geteuid() == 0:
        assert "Permission denied" in reader.said[0]
    assert reader.look() == ["one"]


def test_a_path_that_names_no_file_is_told_of_and_the_other_one_goes_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "a.log").write_text("one\n")
    reader = Reader(tmp_path / "pipe", tmp_path / "loop", tmp_path / "a.log")
    assert reader.look() == ["one"]
    assert [line.rpartition("read: ")[2].partition(";")[0] for line in reader.said] == [
        "it is not a regular file",
        "Too many levels of symbolic links",
    ]


def test_a_name_that_is_no_text_is_followed_sent_and_remembered(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/rank\xff.log")
    Path(path).write_text("one\n")
    reader = Reader(path)
    assert reader.look() == ["one"]
    remembered = reader.stop()
    state = ShipperDirectory(tmp_path / "state")
    state.save(SentPositions(remembered, "local:1:1", "boot"))
    with Path(path).open("a") as file:
        file.write("two\n")
    assert Reader(path, remembered=state.load().files).look() == ["two"]
    state.close()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"{", "truncated"),
        (b"\xff\x00", "malformed"),
        (b'{"x":' + b"[" * 100_000, "recursion depth"),
        (b'{"version": 99}', "newer"),
    ],
)
def test_a_broken_checkpoint_stops_the_start_and_says_what_to_do(
    tmp_path: Path, content: bytes, word: str
) -> None:
    state = ShipperDirectory(tmp_path)
    (tmp_path / "checkpoint.json").write_bytes(content)
    with pytest.raises(MidwatchError, match="checkpoint cannot be read") as caught:
        state.load()
    assert word in caught.value.what
    assert "remove it" in caught.value.remedy
    state.close()


def test_a_file_of_anything_but_lines_is_shipped_in_bounded_lines(tmp_path: Path) -> None:
    path = tmp_path / "core.log"
    path.write_bytes(os.urandom(3_000_000).replace(b"\n", b"") + b"\ntorch.OutOfMemoryError: x\n")
    reader = Reader(path)
    lines: list[bytes] = []
    reader.watch.poll(reader.now, rescan=True)
    (tail,) = reader.watch.tails
    blocks = []
    while block := tail.read(256 * 1024, reader.now):
        blocks.append(block)
    for parcel in reader.chunker.parcels(blocks):
        lines += parcel.chunk.text.split(b"\n")
    assert max(map(len, lines)) <= 16 * 1024
    assert b"torch.OutOfMemoryError: x" in lines
