"""The capabilities page is made from the marks of the tests, and cannot name what is not there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from house import capabilities
from house.capabilities import Group, Shown, WrongMark, marks_in, render, shown_by
from house.tree import ROOT

EXPECTED = {"S000": 36, "S001": 82, "S002": 40, "S003": 52, "S004": 33, "X": 51, "C": 9, "N": 10}


def test_the_catalogue_has_every_id_once_and_in_order() -> None:
    digits = {"C": 1, "N": 1}
    expected = {
        f"{group}-{number:0{digits.get(group, 2)}}"
        for group, n in EXPECTED.items()
        for number in range(1, n + 1)
    }
    assert capabilities.known_ids() == expected


def test_every_line_of_the_catalogue_is_one_plain_sentence() -> None:
    for group in capabilities.catalogue():
        for key, line in group.lines.items():
            assert re.fullmatch(r"[^|\n]{10,120}[^.|\n]", line), key


def test_marks_of_functions_classes_modules_and_parameters_are_found() -> None:
    source = """
import pytest
pytestmark = [pytest.mark.capability("C-1")]

@pytest.mark.capability("S001-34", "S001-35")
async def test_starts(): ...

@pytest.mark.capability("X-01")
class TestFold:
    @pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.capability("X-02"))])
    def test_first(self, n): ...

CASES = [pytest.param(1, marks=pytest.mark.capability("X-03"))]

@pytest.mark.parametrize("n", CASES)
def test_second(n): ...

def helps(): ...
"""
    found = [(capability, test.test) for capability, test in marks_in(source, "tests/test_a.py")]

    assert found == [
        ("C-1", "test_starts"),
        ("S001-34", "test_starts"),
        ("S001-35", "test_starts"),
        ("C-1", "TestFold.test_first"),
        ("X-01", "TestFold.test_first"),
        ("X-02", "TestFold.test_first"),
        ("C-1", "test_second"),
        ("X-03", "test_second"),
    ]


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("@pytest.mark.capability('C-1')\ndef starts(): ...", "starts is no test"),
        ("@pytest.mark.capability\ndef test_a(): ...", "names its ids"),
        ("@pytest.mark.capability()\ndef test_a(): ...", "names its ids"),
        ("@pytest.mark.capability(NAME)\ndef test_a(): ...", "plain strings only"),
        ("@pytest.mark.capability('C-77')\ndef test_a(): ...", "has no C-77"),
        ("CASES = [pytest.param(1, marks=pytest.mark.capability('C-1'))]", ":1: no test of this file bears"),
    ],
)
def test_a_wrong_mark_is_refused(source: str, complaint: str) -> None:
    with pytest.raises(WrongMark, match=complaint):
        shown_by({"tests/test_a.py": source}, frozenset({"C-1"}))


def test_the_page_links_each_test_and_says_what_is_not_shown_yet() -> None:
    groups = [Group("The chain", {"C-1": "Ships lines", "C-2": "Decides"})]

    page = render(groups, {"C-1": [Shown("tests/unit/test_ship.py", "test_ships")]})

    assert "| C-1 | Ships lines | [test_ships](../tests/unit/test_ship.py) |" in page
    assert "| C-2 | Decides | not yet |" in page
    assert "1 of 2 are shown by a test." in page


def test_an_unknown_id_stops_the_test_run(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        'import pytest\n@pytest.mark.capability("S009-01")\ndef test_a(): ...\n'
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(ROOT / "pyproject.toml"),
        "-p",
        "conftest",
        str(tmp_path),
    ]

    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert "docs/capabilities.yaml has no S009-01" in done.stderr
