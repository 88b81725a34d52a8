"""The file with a job's environment is the user's alone, and nobody else's is read."""

from __future__ import annotations

import getpass
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from midwatch.agents.schedulers.environment_file import (
    entries,
    forget_environments,
    keep_environment,
    kept_environment,
)
from midwatch.streams.errors import ConfigurationError

VARIABLES = {
    "A": "1",
    "EMPTY": "",
    "TEXT": "two\nlines = 'x'",
    "BYTES": "\udcff",
    "BASH_FUNC_f%%": "() { :; }",
}
ME = getpass.getuser()


def test_every_variable_comes_back_as_it_was(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        path = keep_environment(tmp_path, VARIABLES)
    finally:
        os.umask(old)
    assert kept_environment(path, ME) == VARIABLES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_name_of_the_file_does_not_say_whether_two_environments_are_the_same(tmp_path: Path) -> None:
    assert keep_environment(tmp_path, VARIABLES) != keep_environment(tmp_path, VARIABLES)


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def _piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda path: path.unlink(), "cannot be read: No such file"),
        (lambda path: path.write_bytes(path.read_bytes() + b"X=1\0"), "was changed after it was signed"),
        (_linked, "is a link"),
        (_piped, "is no plain file"),
        (lambda path: path.chmod(0o640), "can be read or written by others"),
        (lambda path: os.chown(path, 65534, -1), f"is not a file of {ME}"),
    ],
)
def test_a_file_that_is_not_what_was_signed_is_not_used(
    tmp_path: Path, spoil: Callable[[Path], object], why: str
) -> None:
    path = keep_environment(tmp_path, VARIABLES)
    try:
        spoil(path)
    except PermissionError:
        pytest.skip("only root can give a file away")
    with pytest.raises(ConfigurationError, match=why):
        kept_environment(path, ME)


def test_the_file_of_another_name_or_user_is_not_used(tmp_path: Path) -> None:
    path = keep_environment(tmp_path, VARIABLES)
    with pytest.raises(ConfigurationError, match="is not a file of nobody-of-this-name"):
        kept_environment(path, "nobody-of-this-name")
    other = path.rename(path.with_name("environment"))
    with pytest.raises(ConfigurationError, match="no hash"):
        kept_environment(other, ME)


def test_files_without_a_spec_go_once_they_are_old(tmp_path: Path) -> None:
    old, named, young = (keep_environment(tmp_path, VARIABLES) for _ in range(3))
    for path in (old, named):
        os.utime(path, (time.time() - 100,) * 2)
    (old.parent / "something-else").write_text("not ours")
    assert forget_environments(tmp_path, [str(named)], older_than=time.time() - 50) == 1
    assert sorted(old.parent.iterdir()) == sorted([named, young, old.parent / "something-else"])
    assert forget_environments(tmp_path / "absent", [], older_than=time.time()) == 0


def test_what_goes_to_the_scheduler_ends_each_variable_with_a_zero_byte() -> None:
    assert entries({"A": "1", "B": "\udcff"}) == b"A=1\0B=\xff\0"
