"""The capabilities page is made from the marks of the tests, and cannot name what is not there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from house import capabilities
from house.capabilities import Group, Line, Shown, WrongMark, marks_in, render, shown_by
from house.tree import ROOT

EXPECTED = {"S000": 37, "S001": 84, "S002": 41, "S003": 54, "S004": 36, "X": 51, "C": 9, "N": 10}


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
            assert re.fullmatch(r"[^|\n]{10,140}[^.|\n]", line.what), key
            assert not line.missing or re.fullmatch(r"[^|\n]{10,140}[^.|\n]", line.missing), key


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
    found = [(key, test.test, test.parameter) for key, test in marks_in(source, "tests/test_a.py")]

    assert found == [
        ("C-1", "test_starts", ""),
        ("S001-34", "test_starts", ""),
        ("S001-35", "test_starts", ""),
        ("C-1", "TestFold.test_first", ""),
        ("X-01", "TestFold.test_first", ""),
        ("X-02", "TestFold.test_first", "1"),
        ("C-1", "test_second", ""),
        ("X-03", "test_second", "1"),
    ]


MARK = 'pytest.mark.capability("C-1")'


@pytest.mark.parametrize(
    ("parameter", "name"),
    [
        (f"pytest.param('a', 3, marks={MARK})", "a-3"),
        (f"pytest.param(ENDED, marks=[{MARK}], id='the end')", "the end"),
    ],
)
def test_a_mark_on_one_parameter_names_it(parameter: str, name: str) -> None:
    source = f"@pytest.mark.parametrize('x', [{parameter}, 'other'])\ndef test_a(x): ..."

    assert list(marks_in(source, "tests/test_a.py")) == [("C-1", Shown("tests/test_a.py", "test_a", name))]


@pytest.mark.parametrize(
    ("marks", "counts", "needs"),
    [
        # Source texts that `marks_in` reads. No test is skipped by them.
        ("", True, ""),
        ("@pytest.mark.skip", False, ""),
        ("@pytest.mark.skipif(not DATA, reason='no data')", False, ""),
        ("@pytest.mark.skipif(sys.platform != 'linux', reason='reads /proc')", True, ""),
        ("@pytest.mark.slurm", True, "needs a SLURM"),
        ("@pytest.mark.slurm\n@pytest.mark.skip", False, ""),
        ("@pytest.mark.skip\n@pytest.mark.third_party('a clone of theirs')", True, "needs a clone of theirs"),
    ],
)
def test_a_test_that_a_plain_clone_skips_counts_only_for_data_of_others(
    marks: str, counts: bool, needs: str
) -> None:
    of_function = f"{marks}\n@{MARK}\ndef test_a(): ..."
    listed = ", ".join(line.removeprefix("@") for line in marks.splitlines())
    of_module = f"pytestmark = [{listed}]\n@{MARK}\ndef test_a(): ..."

    for source in (of_function, of_module):
        found = [test.needs for _, test in marks_in(source, "tests/test_a.py")]
        assert found == ([needs] if counts else [])


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("@pytest.mark.capability('C-1')\ndef starts(): ...", "starts is no test"),
        ("@pytest.mark.capability\ndef test_a(): ...", "names its ids"),
        ("@pytest.mark.capability()\ndef test_a(): ...", "names its ids"),
        ("@pytest.mark.capability(NAME)\ndef test_a(): ...", "plain strings only"),
        ("@pytest.mark.capability('C-77')\ndef test_a(): ...", "has no C-77"),
        (
            f"@pytest.mark.parametrize('x', [pytest.param(A, marks={MARK})])\ndef test_a(x): ...",
            "needs an id",
        ),
        (f"@pytest.mark.third_party(DATA)\n@{MARK}\ndef test_a(): ...", "names the data as plain text"),
        ("CASES = [pytest.param(1, marks=pytest.mark.capability('C-1'))]", ":1: no test of this file bears"),
    ],
)
def test_a_wrong_mark_is_refused(source: str, complaint: str) -> None:
    with pytest.raises(WrongMark, match=complaint):
        shown_by({"tests/test_a.py": source}, frozenset({"C-1"}))


def test_the_page_links_each_test_and_has_three_states() -> None:
    lines = {"C-1": Line("Ships lines"), "C-2": Line("Decides", "it never explains"), "C-3": Line("Rests")}
    ships = Shown("tests/unit/test_ship.py", "test_ships", "a-3", "needs a SLURM")
    decides = Shown("tests/unit/test_decide.py", "test_decides")

    page = render([Group("The chain", lines)], {"C-1": [ships], "C-2": [decides]})

    linked = r"[test_ships \[a-3\]](../tests/unit/test_ship.py) (needs a SLURM)"
    assert f"| C-1 | Ships lines | shown | {linked} |" in page
    linked = "[test_decides](../tests/unit/test_decide.py)"
    assert f"| C-2 | Decides | in part: it never explains | {linked} |" in page
    assert "| C-3 | Rests | not yet |  |" in page
    assert "Of 3, 1 are shown, 1 in part, 1 not yet." in page


def test_a_line_of_which_nothing_is_shown_says_of_no_part_that_it_is_missing() -> None:
    with pytest.raises(WrongMark, match="C-2: no test shows it"):
        render([Group("The chain", {"C-2": Line("Decides", "it never explains")})], {})


@pytest.mark.parametrize("line", ["{what: Decides}", "{what: Decides, lacks: a reason}"])
def test_a_line_of_the_catalogue_says_what_and_what_is_missing(tmp_path: Path, line: str) -> None:
    path = tmp_path / "capabilities.yaml"
    path.write_text(f"chain: {{title: The chain, lines: {{C-1: {line}}}}}")
    with pytest.raises(WrongMark, match="C-1: a mapping holds `what` and `missing`"):
        capabilities.catalogue(path)


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
