"""A choice of literals is taken from its file only where it is surely that of the same rules and code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from midwatch.agents.reload import kept_choices
from midwatch.agents.reload.kept_choices import KeptChoices
from midwatch.rules import compiler
from midwatch.rules.choice import Choice
from midwatch.rules.compiler import compile_rules
from midwatch.rules.model import Rule
from midwatch.rules.workloads import storm

RULES = (
    Rule(name="mesh", pattern="the mesh of (?P<what>\\w+) was lost", stop_pattern="the mesh is back"),
    Rule(name="nan", pattern="(?i)loss is nan|gradient norm: inf"),
    Rule(name="number", pattern=r"^\d+$"),
    Rule(name="umlaut", pattern="Gerät verloren|\xff\xfe"),
)


@cache
def _made(rules: tuple[Rule, ...] = RULES) -> Choice:
    choice = compile_rules(rules).choice
    assert choice is not None
    return choice


@pytest.fixture
def kept(tmp_path: Path) -> KeptChoices:
    return KeptChoices(tmp_path / "cache")


def test_what_was_kept_is_read_again_and_compiles_to_the_same(
    kept: KeptChoices, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept.read(RULES) is None
    kept.write(_made())
    known = kept.read(RULES)
    assert known == _made()
    anew = compile_rules(RULES)

    def never(*_: object) -> None:
        raise AssertionError("it was chosen anew")

    monkeypatch.setattr(compiler, "choose_triggers", never)
    quick = compile_rules(RULES, choice=known)
    text = (
        storm(20_000)
        + b"the mesh of racks was lost\nLoss IS NaN\n12\nthe mesh is back\nGer\xc3\xa4t verloren"
    )
    for find in ("match_chunk", "match_stops"):
        told = [
            [(hit.rule.name, hit.start) for hit in getattr(rule_set, find)(text)]
            for rule_set in (anew, quick)
        ]
        assert told[0]
        assert told[0] == told[1]


def test_other_rules_do_not_use_it(kept: KeptChoices) -> None:
    kept.write(_made())
    others = (*RULES[1:], RULES[0])
    assert kept.read(others) is None
    # And should somebody hand it to them all the same, their lines are found.
    found = compile_rules(others, choice=_made()).match_chunk(b"." * 5000 + b"\nthe mesh of racks was lost\n")
    assert [hit.rule.name for hit in found] == ["mesh"]


def test_other_code_does_not_use_it(kept: KeptChoices, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write(_made())
    monkeypatch.setattr(kept_choices, "_code", lambda: "that of tomorrow")
    assert kept.read(RULES) is None


def _with_right_checksum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda whole: whole[:-1],
        lambda whole: whole.replace(b"of_pattern", b"of_patterm"),
        lambda whole: whole + b" ",
        lambda whole: b"\xff" + whole[1:],
        lambda _: _with_right_checksum(b"[1, 2]"),
        lambda _: _with_right_checksum(b'{"rules": "x"}'),
        lambda _: _with_right_checksum(b"no JSON"),
    ],
)
def test_a_damaged_file_is_passed_over_and_told(
    damage: Callable[[bytes], bytes], kept: KeptChoices, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept.write(_made())
    (file,) = (tmp_path / "cache").iterdir()
    whole = file.read_bytes()
    assert damage(whole) != whole
    file.write_bytes(damage(whole))
    assert kept.read(RULES) is None
    assert str(file) in caplog.text
    kept.write(_made())
    assert kept.read(RULES) == _made()


def test_only_the_latest_are_kept(kept: KeptChoices, tmp_path: Path) -> None:
    sets = [(Rule(name="a", pattern=f"number {n} is lost"),) for n in range(12)]
    for rules in sets:
        kept.write(_made(rules))
    assert len(list((tmp_path / "cache").iterdir())) == 8
    assert kept.read(sets[-1]) is not None


def test_a_directory_that_cannot_be_written_only_costs_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file stands here")
    kept = KeptChoices(tmp_path / "cache")
    kept.write(_made())
    assert kept.read(RULES) is None
    assert "not kept" in caplog.text
