"""The gate plays a failed test once more, alone: in a small project of its own, with the real pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from house import failures
from house.cases import quick
from house.failures import Run
from house.second_try import MOST, reason_against
from house.tree import ROOT

CONFTEST = "from house import failures\n\n\ndef pytest_configure(config):\n    failures.begin(config)\n"
FLAKY = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("said", ["one two", "a[0]::b/c"])
def test_the_first_time_it_fails(said):
    seen = Path("seen-" + str(len(said)))
    first = not seen.exists()
    seen.touch()
    assert not first, "nobody was there"
"""
FAILS = "def test_it_always_fails():\n    raise ValueError('as ever\\nand more of it')\n"
PASSES = "def test_it_holds():\n    pass\n"
SKIPS_THEN = """
from pathlib import Path
import pytest

def test_it_fails_and_then_skips():
    if Path("seen").exists():
        pytest.skip("not today")
    Path("seen").touch()
    assert 1 + 1 == 3
"""
IN_PROCESSES = [pytest.param((), id="one process")]
if not quick():
    IN_PROCESSES.append(pytest.param(("-n2",), id="two workers"))
SHARED = """
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def service():
    seen = Path("service")
    first = not seen.exists()
    seen.touch()
    assert not first, "it was not ready in time"

@pytest.mark.parametrize("number", range(5))
def test_it_is_asked(service, number):
    pass
"""
DIES = "import os\n\n\ndef test_it_takes_its_worker_along():\n    os._exit(7)\n"


@dataclass(frozen=True)
class Ended:
    """How the gate ended on a project."""

    code: int
    said: list[str]

    def after(self, begin: str) -> list[str]:
        """The lines behind the one that begins so, which is the last line that says how the run ended."""
        (place,) = [number for number, line in enumerate(self.said) if line.startswith(begin)]
        return [line.strip() for line in self.said[place + 1 :]]


def gate(project: Path, *options: str, **files: str) -> Ended:
    (project / "conftest.py").write_text(CONFTEST)
    (project / "pytest.ini").write_text("[pytest]\naddopts = -p xdist.plugin\n")
    for name, text in files.items():
        (project / f"test_{name}.py").write_text(text)
    pytest_ = str(Path(sys.executable).with_name("pytest"))
    done = subprocess.run(
        [sys.executable, "-m", "house.second_try", str(project), pytest_, *options],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout.splitlines())


def closing_lines(ended: Ended) -> list[str]:
    return [line for line in ended.said if " passed" in line]


def test_a_run_in_which_all_holds_ends_as_pytest_does(tmp_path: Path) -> None:
    ended = gate(tmp_path, passes=PASSES)
    assert ended.code == 0
    assert "1 passed in " in ended.said[-1]


@pytest.mark.parametrize("options", IN_PROCESSES)
def test_a_test_that_holds_alone_leaves_the_run_green_and_is_named_last(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    ended = gate(tmp_path, *options, flaky=FLAKY, passes=PASSES)
    assert ended.code == 0, ended.said
    last = ended.after("The run is green, but what held only alone is to be mended before anything else:")
    assert sorted(last) == sorted(
        [
            "test_flaky.py::test_the_first_time_it_fails[one two]",
            "failed first: AssertionError: nobody was there",
            "held alone",
            "test_flaky.py::test_the_first_time_it_fails[a[0]::b/c]",
            "failed first: AssertionError: nobody was there",
            "held alone",
        ]
    )
    (closing,) = closing_lines(ended)
    assert "2 failed, 1 passed in " in closing


@pytest.mark.parametrize("options", IN_PROCESSES)
def test_what_one_service_kept_from_beginning_is_one_failure(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    dist = ("--dist", "loadfile") if options else ()
    ended = gate(tmp_path, *options, *dist, shared=SHARED, flaky=FLAKY)
    assert ended.code == 0, ended.said
    last = ended.after("The run is green, but what held only alone is to be mended before anything else:")
    assert last.count("failed first: AssertionError: it was not ready in time") == 5
    assert last.count("held alone") == 7


def test_a_test_that_fails_again_makes_the_run_red(tmp_path: Path) -> None:
    ended = gate(tmp_path, flaky=FLAKY, fails=FAILS)
    assert ended.code == 1
    last = ended.after("The run is red: 1 of 3 failed again when played alone.")
    assert last[:3] == [
        "test_fails.py::test_it_always_fails",
        "failed first: ValueError: as ever",
        "failed again, alone: ValueError: as ever",
    ]
    assert last.count("held alone") == 2
    assert closing_lines(ended) == []


def test_a_skip_of_the_second_try_is_no_pass(tmp_path: Path) -> None:
    ended = gate(tmp_path, skips=SKIPS_THEN)
    assert ended.code == 1
    assert "failed first: assert (1 + 1) == 3" in ended.after("The run is red: 1 of 1")


@pytest.mark.parametrize("options", IN_PROCESSES)
def test_a_file_that_cannot_be_collected_makes_the_run_red_at_once(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    ended = gate(tmp_path, *options, broken="import nothing_of_that_name\n", flaky=FLAKY)
    assert ended.code == 1
    (why,) = ended.after("The run is red, and no test was played again:")
    assert why.startswith("test_broken.py could not be collected: ")
    assert "nothing_of_that_name" in why


def test_a_worker_that_dies_makes_the_run_red_at_once(tmp_path: Path) -> None:
    ended = gate(tmp_path, "-n2", dies=DIES, passes=PASSES)
    assert ended.code == 1
    (why,) = ended.after("The run is red, and no test was played again:")
    assert why.startswith("test_dies.py::test_it_takes_its_worker_along: worker 'gw")


def test_a_run_that_dies_makes_the_gate_red(tmp_path: Path) -> None:
    ended = gate(tmp_path, dies=DIES)
    assert ended.code == 1
    assert ended.after("The run is red, and no test") == ["the run of the tests died, or never began"]


def test_where_more_than_tests_went_wrong_none_is_played_again() -> None:
    one = {"a": "x"}
    assert reason_against(Run(1, failed=one)) == []
    assert reason_against(Run(1, failed={str(n): "x" for n in range(MOST)})) == []
    assert reason_against(Run(1, failed={str(n): "x" for n in range(MOST + 1)}))
    many = {f"test_a.py::{n}": "not ready" for n in range(MOST + 1)}
    assert reason_against(Run(1, failed=many, unready=list(many))) == []
    assert reason_against(Run(1, failed=many))
    apart = {f"test_{n}.py::a": "not ready" for n in range(MOST + 1)}
    assert reason_against(Run(1, failed=apart, unready=list(apart)))
    assert reason_against(Run(1, failed=one, broken=["redis/stop was never hit"])) == [
        "redis/stop was never hit"
    ]
    assert reason_against(Run(1)) == ["it failed, and no test did"]
    for code in (0, 2, 3, 4, 5):
        assert reason_against(Run(code, failed=one)) == [f"pytest ended with exit code {code}"]


def test_a_cause_is_one_line_of_bounded_length() -> None:
    assert failures.cause_of("\nfixture 'x'\nE   fixture 'y' not found\n") == "fixture 'y' not found"
    assert failures.cause_of("needs a SLURM: apt-get") == "needs a SLURM: apt-get"
    assert failures.cause_of(None) == "no cause was told"
    assert len(failures.cause_of("long " * 200)) == 301
