"""`midwatch replay` after a collective timeout: logs of each trainer before and after its first steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from midwatch.agents.cli.ask.replay import replay
from unit.agents.conftest import Watch
from unit.agents.trainers.test_trained import TIMEOUT
from unit.shippers.pipe.test_spool import Consumer, spooled
from unit.shippers.reading import Reader

NAMED: list[dict[str, str]] = yaml.load(
    Path(__file__).with_name("named.yaml").read_text("utf-8"), yaml.CSafeLoader
)
NAMES = [each["trainer"] for each in NAMED]
EXAMPLE = (Path(__file__).parents[4] / "docs" / "rules.md").read_text("utf-8").rpartition("```yaml\n")[2]


def _decided(log: bytes, place: Path, *rules: Path) -> dict[str, Any]:
    file = place / "job.log"
    file.write_bytes(log + TIMEOUT.encode() + b"\n")
    presets = [part for rule in ("default", *rules) for part in ("--rules", str(rule))]
    done = CliRunner().invoke(replay, [str(file), "--json", *presets], standalone_mode=False)
    assert done.exception is None, done.output
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["verdict"]["error_type"] == "nccl_timeout"
    return said


@pytest.mark.parametrize("log", NAMED, ids=NAMES)
def test_a_trainer_that_made_steps_is_started_again(watch: Watch, log: dict[str, str]) -> None:
    done = watch(f"{log['before']}{log['trained']}{TIMEOUT}\n")
    assert done.verdict.error_type == "nccl_timeout"
    assert (done.verdict.transient, done.decision.action) == (True, "restart")


def test_a_trainer_without_a_step_is_held_and_told_what_to_set(watch: Watch) -> None:
    for log in NAMED:
        done = watch(f"{log['before']}\n{TIMEOUT}\n")
        assert (done.decision.action, log["trainer"]) == ("hold", log["trainer"])
        assert "no training step was seen" in done.decision.reason
        assert "`role: progress`" in done.decision.reason
        assert "`rules.directories`" in done.decision.reason


def test_the_rule_that_the_page_shows_is_what_a_hold_asks_for(tmp_path: Path) -> None:
    log = b"tick 40 of the toy\n"
    held = _decided(log, tmp_path)["decision"]
    assert (held["action"], "no training step was seen" in held["reason"]) == ("hold", True)
    rule = tmp_path / "mine.yaml"
    rule.write_text(EXAMPLE.partition("```")[0])
    said = _decided(log, tmp_path, rule)
    assert (said["verdict"]["step"], said["decision"]["action"]) == (40, "restart")


def _pieces(log: dict[str, str]) -> Iterator[bytes]:
    """What the trainer writes at once: a bar is rewritten behind each carriage return."""
    for number, piece in enumerate((log["before"] + log["trained"]).encode().split(b"\r")):
        yield b"\r" * (number > 0) + piece


def _from_file(pieces: Sequence[bytes], place: Path) -> list[str]:
    file = place / "train.log"
    file.touch()
    reader, lines = Reader(file), []
    for piece in pieces:
        with file.open("ab") as log:
            log.write(piece)
        lines += reader.later(3.0).look()
    return lines + reader.look(flush=True)


def _from_pipe(pieces: Sequence[bytes], place: Path) -> list[str]:
    spooled(place, list(pieces))
    return [text for *_, text in Consumer(place).all()]


@pytest.mark.parametrize("shipped", [_from_file, _from_pipe])
def test_what_shippers_make_of_bars_shows_the_steps_too(
    watch: Watch, shipped: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for log in NAMED:
        lines = shipped([*_pieces(log), b"\n"], tmp_path_factory.mktemp("shipped"))
        done = watch("\n".join([*lines, TIMEOUT]) + "\n")
        assert (done.decision.action, log["trainer"]) == ("restart", log["trainer"]), lines
