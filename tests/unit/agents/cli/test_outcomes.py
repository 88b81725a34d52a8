"""The file that `midwatch outcomes --output` writes, which a running worker may read at any time."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from midwatch.agents.cli.ask.outcomes import outcomes
from midwatch.agents.query import inquiry

EMPTY = '{"version": 1, "ends": {}}\n'


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(inquiry, "ask_all", lambda *_: SimpleNamespace(timelines={}, unreadable=0))
    monkeypatch.setenv("MIDWATCH_STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("MIDWATCH_KAFKA__BOOTSTRAP", "127.0.0.1:9")
    monkeypatch.setenv("MIDWATCH_REDIS__URL", "redis://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)


def write(path: Path) -> None:
    done = CliRunner().invoke(outcomes, ["--output", str(path)], standalone_mode=False)
    assert done.exception is None, done.exception


def test_who_reads_the_file_while_it_is_replaced_reads_the_old_one_whole(tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text("old")
    link = tmp_path / "outcomes.json"
    link.symlink_to(tmp_path / "kept.json")
    with link.open() as reader:
        write(link)
        assert reader.read() == "old"
    assert (link.is_symlink(), (tmp_path / "kept.json").read_text()) == (True, EMPTY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.json", "outcomes.json"]


def test_a_pipe_gets_the_text_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe)
    assert os.read(reader, 100).decode() == EMPTY
    os.close(reader)
    assert pipe.is_fifo()
