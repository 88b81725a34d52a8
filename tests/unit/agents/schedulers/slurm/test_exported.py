"""The variables that reach a job are those that sbatch itself would send."""

from __future__ import annotations

import pytest

from midwatch.agents.schedulers.slurm.exported import (
    export_given,
    for_file,
    for_steps,
    from_file,
    sent,
    tokens,
    with_ours,
)
from midwatch.agents.schedulers.slurm.sbatch_argv import split

PERSON = {"A": "1", "B": "2", "SLURM_CONF": "/etc/slurm.conf"}
LOGIN = {"SLURM_GET_USER_ENV": "1"}


@pytest.mark.parametrize(
    ("line", "variable", "script", "given"),
    [
        ("--export=A", "B", "--export=C", "A"),
        ("--export A --export=B", "", "", "B"),
        ("-N2", "B", "--export=C", "B"),
        ("", "", "--export=C", "C"),
        ("-N2", "", "-N3", None),
    ],
)
def test_the_line_outweighs_the_variable_and_the_variable_the_script(
    line: str, variable: str, script: str, given: str | None
) -> None:
    environment = {"SBATCH_EXPORT": variable} if variable else {}
    assert export_given(split(line.split())[0], environment, split(script.split())[0]) == given


@pytest.mark.parametrize(
    ("export", "found"),
    [
        (None, PERSON),
        ("ALL", PERSON),
        ("all", PERSON),
        ("NONE", {"SLURM_CONF": "/etc/slurm.conf", "SLURM_EXPORT_ENV": "NONE"} | LOGIN),
        ("NIL", {"SLURM_CONF": "/etc/slurm.conf", "SLURM_EXPORT_ENV": "NIL"}),
        ("A,C", {"A": "1", "SLURM_CONF": "/etc/slurm.conf", "SLURM_EXPORT_ENV": "A,C"} | LOGIN),
        (
            "A=x y,B",
            {"A": "x y", "B": "2", "SLURM_CONF": "/etc/slurm.conf", "SLURM_EXPORT_ENV": "A=x y,B"} | LOGIN,
        ),
        ("ALL,A=3", PERSON | {"A": "3", "SLURM_EXPORT_ENV": "ALL,A=3"} | LOGIN),
        ("A=3,ALL", PERSON | {"SLURM_EXPORT_ENV": "A=3,ALL"} | LOGIN),
    ],
)
def test_export_is_obeyed_as_sbatch_obeys_it(export: str | None, found: dict[str, str]) -> None:
    assert sent(PERSON, export) == found


def test_what_srun_is_to_hand_on_stays_as_the_person_set_it() -> None:
    assert sent(PERSON | {"SLURM_EXPORT_ENV": "B"}, "A")["SLURM_EXPORT_ENV"] == "B"
    assert for_steps({"SLURM_EXPORT_ENV": "NONE"}, ["OURS"]) == {"SLURM_EXPORT_ENV": "OURS"}
    assert for_steps({"SLURM_EXPORT_ENV": "A"}, ["OURS"]) == {"SLURM_EXPORT_ENV": "A,OURS"}
    assert for_steps({"A": "1"}, ["OURS"]) == {"A": "1"}


@pytest.mark.parametrize(
    ("export", "words"),
    [
        ("A,B=c", ["A", "B=c"]),
        ("'A=x,y',B", ["A=x,y", "B"]),
        ('A="x,y",B', ['A="x,y"', "B"]),
        ("A,,B,", ["A", "B"]),
        ("A='x,y", ["A='x,y"]),
    ],
)
def test_a_comma_between_quotation_marks_separates_nothing(export: str, words: list[str]) -> None:
    assert tokens(export) == words


def test_our_variables_are_named_where_only_some_may_pass() -> None:
    assert with_ours("NONE", ["X", "Y"]) == "X,Y"
    assert with_ours("A,B=c", ["X"]) == "A,B=c,X"
    assert with_ours("NIL", ["X"]) == "NIL"


def test_what_sbatch_leaves_out_of_a_file_and_what_slurm_replaces_comes_back_in_the_job() -> None:
    variables = {"DISPLAY": ":7", "A": "1", "COUNT": "of SLURM"}
    packed = for_file(variables, {"COUNT": "4"})
    assert "DISPLAY" not in packed
    assert from_file(packed) == {"DISPLAY": ":7", "A": "1", "COUNT": "4"}
