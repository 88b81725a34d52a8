"""A page that code writes cannot grow stale behind the gate's back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from house import pages
from house.tree import ROOT
from midwatch.rules.loader import load_bundle, shipped_plan
from midwatch.rules.matching.compiler import content_hash
from midwatch.rules.prefilter.plan import PrefilterPlan
from midwatch.rules.prefilter.plan_file import plan_of_text


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    pages.write(root)
    return root


def test_what_was_just_written_is_not_stale(written: Path) -> None:
    assert pages.check(written) == []


@pytest.mark.parametrize("path", ["docs/catalogue.md", "observe/prometheus/alerts.yml"])
def test_a_changed_or_missing_file_is_told_with_its_remedy(written: Path, path: str) -> None:
    file = written / path
    text = file.read_text()
    file.write_text(text + "one word more\n")
    assert pages.check(written) == [f"{path} is stale: make pages"]
    file.unlink()
    assert pages.check(written) == [f"{path} is stale: make pages"]
    file.write_text(text)


@pytest.mark.usefixtures("small_background")
@pytest.mark.parametrize("known", [KeyError("rules"), None], ids=["no plan", "another's plan"])
def test_a_plan_that_is_missing_or_of_other_rules_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, known: Exception | None
) -> None:
    shipped, few = shipped_plan(), load_bundle("memory")

    def plan() -> PrefilterPlan:
        if known is not None:
            raise known
        return shipped

    monkeypatch.setattr(pages, "shipped_plan", plan)
    monkeypatch.setattr(pages, "load_bundle", lambda _: few)
    made = plan_of_text(pages.plan_text().encode())
    assert made.rules == content_hash(few.rules) != shipped.rules


def test_the_gate_asks_for_them() -> None:
    command = [sys.executable, "-m", "house.gate", "pages"]
    done = subprocess.run(command, cwd=ROOT / "tests", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "house: 0 problems in pages\n"), done.stderr


def test_every_page_that_names_its_writer_is_among_them() -> None:
    named = {
        page.relative_to(ROOT).as_posix()
        for page in (ROOT / "docs").glob("*.md")
        if f"> docs/{page.name}" in page.read_text()
    }
    assert named <= pages.PAGES.keys()
