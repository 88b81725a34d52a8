"""Installations find the literals chosen that all tests share; a benchmark's begin as a user's do."""

from __future__ import annotations

from pathlib import Path

import pytest

from first_choices import PLACE, put_first_choices


def test_in_a_run_of_tests_an_installation_finds_the_choice_made(tmp_path: Path) -> None:
    put_first_choices(tmp_path / "state")
    assert list((tmp_path / "state" / "cache").glob("*.choice"))


def test_outside_of_one_it_begins_with_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PLACE)
    put_first_choices(tmp_path / "state")
    assert not (tmp_path / "state").exists()
