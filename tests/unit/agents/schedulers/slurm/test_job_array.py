"""The tasks of an array, as sbatch counts them."""

from __future__ import annotations

import pytest

from midwatch.agents.schedulers.slurm.job_array import array_given, indices, of_whole_array
from midwatch.agents.schedulers.slurm.sbatch_argv import split
from midwatch.streams.errors import UsageError


@pytest.mark.parametrize(
    ("text", "tasks"),
    [("1-4", (1, 2, 3, 4)), ("0-9:4%1", (0, 4, 8)), ("7,3,3,1-2%2", (1, 2, 3, 7)), ("5", (5,))],
)
def test_the_indices_of_an_array(text: str, tasks: tuple[int, ...]) -> None:
    assert indices(text) == tasks


@pytest.mark.parametrize("text", ["", "a", "1-", "-3", "4-1", "1-3:0", "0-4000000000", "0-10000", "1;2"])
def test_what_names_no_tasks_or_too_many_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        indices(text)


def test_the_line_outweighs_the_variable_and_the_variable_the_script() -> None:
    script = split(["-a", "1-2"])[0]
    assert array_given(split(["--array=3"])[0], {"SBATCH_ARRAY_INX": "4"}, script) == "3"
    assert array_given([], {"SBATCH_ARRAY_INX": "4"}, script) == "4"
    assert array_given([], {}, script) == "1-2"
    assert array_given([], {}, ()) is None


def test_a_task_is_told_of_the_whole_array() -> None:
    told = of_whole_array(["sbatch", "--array=1-7:2", "t.sh"])
    assert {name.removeprefix("SLURM_ARRAY_TASK_"): value for name, value in told.items()} == {
        "COUNT": "4",
        "MIN": "1",
        "MAX": "7",
        "STEP": "2",
    }
    assert of_whole_array(["sbatch", "--array=1,2,7", "t.sh"])["SLURM_ARRAY_TASK_STEP"] == "1"
    assert of_whole_array(["sbatch", "t.sh", "--array=1-3"]) == {}
