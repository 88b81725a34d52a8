"""The report of `make chaos`: what was never hit is a complaint, and a part played anew replaces the old."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.chaos import report, tally
from faults.chaos.parts import wanted


def played(
    monkeypatch: pytest.MonkeyPatch, folder: Path, hits: tuple[str, ...], *, held: bool = True
) -> Path:
    kept = folder / f"tally{len(list(folder.iterdir()))}"
    monkeypatch.setenv(tally.FILE, str(kept))
    try:
        with tally.counting("executor", "killed", 7) as count:
            for name in hits:
                count.hit(name)
            count.add(starts=2)
            count.add(starts=2)
            assert held, "two alive"
    except AssertionError:
        assert not held
    return kept


def test_a_failpoint_that_was_never_hit_is_a_complaint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    every = wanted("executor")
    assert "failpoint claim" in every
    kept = tally.read(played(monkeypatch, tmp_path, tuple(n for n in every if n != "failpoint claim")))
    whole = report.merge({"cases": []}, kept, 5, 10)
    assert report.complaints(whole, ["executor"]) == ["executor: failpoint claim was never hit"]
    assert whole["cases"][0]["found"] == {"starts": 4}


def test_a_case_that_did_not_hold_is_kept_and_told_until_it_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    every = wanted("executor")
    whole = report.merge({"cases": []}, tally.read(played(monkeypatch, tmp_path, every, held=False)), 5, 10)
    assert report.complaints(whole, ["executor"]) == [
        "executor: killed (seed 7, SEED=5): AssertionError: two alive"
    ]
    report.write(whole, tmp_path / "results")
    again = report.merge(
        report.load(tmp_path / "results"), tally.read(played(monkeypatch, tmp_path, every)), 6, 10
    )
    assert report.complaints(again, ["executor"]) == []
    report.write(again, tmp_path / "results")
    page = (tmp_path / "results" / "chaos.md").read_text()
    assert "| killed | 5 | 4 | yes |" in page
    assert "failpoint claim 1" in page
