"""What the pages tell a reader to type is there, takes these words, and, where it needs no service, works."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from house.shown_commands import Shown, shown
from house.tree import ROOT
from midwatch.agents.cli import midwatch, run

FIXTURES = ROOT / "tests/unit/rules/oellm/fixtures/gen1"
OFFLINE = (("replay",), ("rules", "convert"), ("rules", "check"), ("rules", "test"), ("rules", "list"))
LOG = """\
 [2026-11-20 07:32:05] iteration       12/     100 | lm loss: 2.0E+00 |
Traceback (most recent call last):
  File "train.py", line 7, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that has what the pages speak of."""
    shutil.copytree(FIXTURES, tmp_path / "config")
    shutil.copy(FIXTURES / "monitoring/plain.yaml", tmp_path / "config/monitoring/mine.yaml")
    shutil.copy(FIXTURES / "restart/selective.yaml", tmp_path / "config/restart/mine.yaml")
    (tmp_path / "my_rules").mkdir()
    (tmp_path / "mine.policy.yaml").write_text("clauses: []\n")
    (tmp_path / "train.sh").write_text("#!/bin/sh\n")
    (tmp_path / "train.log").write_text(LOG)
    (tmp_path / "record").write_text("JobID|State|ExitCode\n44|NODE_FAIL|1:0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MIDWATCH_STATE_DIRECTORY", str(tmp_path / "state"))


def _resolved(words: Sequence[str]) -> tuple[click.Command, click.Context, list[str]]:
    command: click.Command = midwatch
    context = click.Context(command, info_name="midwatch")
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        inner = command.get_command(context, rest[0])
        assert inner is not None, f"there is no command {rest[0]}"
        command, context = inner, click.Context(inner, info_name=rest[0], parent=context)
        rest = rest[1:]
    return command, context, rest


@pytest.mark.parametrize("told", [s for s in shown() if s.words[0] == "make"], ids=str)
def test_a_target_that_is_shown_is_there(told: Shown) -> None:
    assert re.search(rf"^{told.words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("told", [s for s in shown() if s.words[0] == "midwatch"], ids=str)
def test_a_command_that_is_named_is_there_with_its_options(told: Shown) -> None:
    command, context, rest = _resolved(told.words[1:])
    known = {name for parameter in command.get_params(context) for name in parameter.opts}
    ours = rest[: rest.index("--")] if "--" in rest else rest
    assert [word for word in ours if word.startswith("-") and word.partition("=")[0] not in known] == []


@pytest.mark.parametrize("told", [s for s in shown() if s.words[0] == "midwatch" and s.whole], ids=str)
@pytest.mark.usefixtures("place")
def test_a_line_to_be_typed_takes_its_words(told: Shown) -> None:
    command, context, rest = _resolved(told.words[1:])
    command.make_context(context.info_name, rest, parent=context.parent)
    if any(told.words[1 : 1 + len(words)] == words for words in OFFLINE):
        assert run(told.words[1:]) in (0, 1)


@pytest.mark.usefixtures("place")
def test_the_readme_s_shortest_path_gives_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [s for s in shown() if s.page == "README.md" and s.words[1:2] == ("replay",)]
    assert lines
    for told in lines:
        words = [word if not word.endswith(".log") else "train.log" for word in told.words[1:]]
        assert run(words) == 1
        assert "oom" in capsys.readouterr().out
