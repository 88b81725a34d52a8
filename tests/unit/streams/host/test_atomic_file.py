"""A file is there whole or not at all, and of all who would make it one does."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from midwatch.streams.host.atomic_file import create_if_absent, replace_file


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is synced, as it is synced; drafts are called `draft`."""
    told: list[str] = []

    def note(descriptor: int) -> None:
        path = Path(f"/dev/fd/{descriptor}").resolve()
        told.append("draft" if path.name.startswith(".") else path.name)

    monkeypatch.setattr(os, "fsync", note)
    return told


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_is_replaced_and_leaves_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content in (b"one", b"", b"three"):
        replace_file(file, content)
        assert file.read_bytes() == content
    assert names(tmp_path) == ["file"]


def test_a_replacement_that_fails_leaves_the_old_content_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    replace_file(file, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(file, b"new")
    assert (file.read_bytes(), names(tmp_path)) == (b"old", ["file"])


@pytest.mark.parametrize("write", [replace_file, create_if_absent])
def test_content_is_synced_before_its_name(write: object, tmp_path: Path, synced: list[str]) -> None:
    assert callable(write)
    write(tmp_path / "file", b"content")
    assert synced == ["draft", tmp_path.name]


@pytest.mark.parametrize("write", [replace_file, create_if_absent])
def test_a_secret_is_the_owners_alone_under_any_umask(write: object, tmp_path: Path) -> None:
    assert callable(write)
    before = os.umask(0)
    try:
        write(tmp_path / "secret", b"s", mode=0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_a_file_that_exists_stands_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "file"
    assert create_if_absent(file, b"first")
    assert not create_if_absent(file, b"second")
    assert (file.read_bytes(), names(tmp_path)) == (b"first", ["file"])


def test_of_many_at_once_one_makes_the_file(tmp_path: Path) -> None:
    file, contents = tmp_path / "file", [str(number).encode() * 1000 for number in range(32)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda content: create_if_absent(file, content), contents))
    assert made.count(True) == 1
    assert file.read_bytes() == contents[made.index(True)]
    assert names(tmp_path) == ["file"]


def test_a_name_that_leads_nowhere_is_taken_too(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.symlink_to(tmp_path / "nowhere")
    assert not create_if_absent(file, b"content")
