"""A saved log whose last rows of a table have a loss that is no number. A person decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.replay.endings.closing_tables import VANISHED, broken_table
from unit.agents.conftest import Watch

FASTAI = """epoch     train_loss  valid_loss  accuracy  time
0         0.703412    0.522143    0.791000  00:12
1         {0}    {1}    0.801000  00:12
2         {0}    {1}    0.811000  00:12
3         {0}    {1}    0.098000  00:12
"""
SKORCH = """  epoch    train_loss    valid_acc    valid_loss     dur
-------  ------------  -----------  ------------  ------
      1        0.6905       0.6150        0.6699  0.0207
      2           {0}       0.4950           {1}  0.0203
      3           {0}       0.4950           {1}  0.0203
      4           {0}       0.4950           {1}  0.0203
"""
BOXED = """+-----------+-------+--------------+
| Iteration | Loss  | Elapsed Time |
+-----------+-------+--------------+
| 1         | 4.287 | 30.0         |
| 5         | {0}   | 50.3         |
| 9         | {0}   | 61.9         |
| 12        | {0}   | 74.3         |
+-----------+-------+--------------+
"""
TABBED = "Step\tTraining Loss\n10\t2.31\n20\t{0}\n30\t{0}\n40\t{0}\n"
TABLES = [FASTAI, SKORCH, BOXED, TABBED]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("value", ["nan", "inf", "NaN"])
def test_rows_whose_loss_is_no_number_are_the_end(watch: Watch, table: str, value: str) -> None:
    text = "the toy starts\n" + table.format(value, value)
    done = watch(text)
    assert (done.verdict.error_type, done.decision.action) == ("numerical_instability", "hold")
    broken = next(
        number
        for number, line in enumerate(text.split("\n"), 1)
        if f" {value}" in line or f"\t{value}" in line
    )
    assert done.verdict.root_line_number == broken
    assert done.decision.reason == "the log ends in rows of a table whose loss is no number"


@pytest.mark.parametrize("table", TABLES)
def test_finite_rows_and_other_data_without_a_loss_are_no_failure(watch: Watch, table: str) -> None:
    assert watch(table.format("0.5", "0.6")).verdict.state == "unknown"
    assert watch(table.format("0.5", "nan")).verdict.state == "unknown"
    assert watch(table.format("nan", "nan") + "the toy goes on\n").verdict.state == "unknown"


def test_one_row_without_a_number_is_no_end(watch: Watch) -> None:
    assert watch("step\tloss\n1\t0.5\n2\tnan\n3\t0.4\n4\tnan\n").verdict.state == "unknown"


@given(st.lists(st.binary(max_size=40), max_size=12))
def test_any_lines_end_in_a_broken_table_or_not(lines: list[bytes]) -> None:
    numbered = list(enumerate(lines, 1))
    found = broken_table(numbered)
    assert found is None or found in dict(numbered)


def counted(name: str, *values: str) -> str:
    """A table of two measures, of which the values are the first."""
    rows = (
        f"{n:7} | {value:>8} | {value if '.' not in value else '0.5':>8}" for n, value in enumerate(values)
    )
    return "\n".join((f"{name:>7} |     cost |    |box|", "--------+----------+---------", *rows, ""))


@pytest.mark.parametrize("gone", ["nan", "inf", "********"])
@pytest.mark.parametrize("behind", ["", "wrote toy.pt\n", "wrote toy.pt\nexit: 0\n"])
def test_rows_that_hold_no_number_any_more_are_the_end(watch: Watch, gone: str, behind: str) -> None:
    done = watch(counted("iter", "2.1", "1.9", "1.8", *[gone] * 12) + behind)
    assert (done.verdict.error_type, done.decision.action) == ("numerical_instability", "hold")
    assert (done.verdict.root_line_number, done.decision.reason) == (6, VANISHED)


@pytest.mark.parametrize(
    "text",
    [
        counted("class", "0.9", "0.8", "0.7", *["nan"] * 12),
        counted("iter", "2.1", "1.9", "1.8", *["nan"] * 12, "1.7"),
        counted("iter", "2.1", "1.9", "1.8", *["nan"] * 7),
        counted("iter", *["nan"] * 15),
        counted("iter", "2.1", "1.9", "1.8", *["nan"] * 12) + "the toy goes on\n" * 9,
    ],
    ids=["of classes", "a number at the end", "a few rows", "never a number", "many lines behind"],
)
def test_other_rows_without_numbers_end_nothing(watch: Watch, text: str) -> None:
    assert watch(text).verdict.state != "failed"


def bare(*values: str, between: str = "the toys are shuffled\n", first: int = 7) -> str:
    """What a loop prints that names neither its count nor its measure."""
    return "".join(f"{n} {value} ****\n{between}" for n, value in enumerate(values, first))


@pytest.mark.parametrize("behind", ["", "wrote toy.pt\nthe patience is at its end\n"])
def test_a_bare_measure_that_is_no_number_any_more_is_the_end(watch: Watch, behind: str) -> None:
    done = watch(bare("7.41", "7.25", "7.19", *["nan"] * 12) + behind)
    assert (done.verdict.error_type, done.decision.action) == ("numerical_instability", "hold")
    assert (done.verdict.root_line, done.decision.reason) == ("10 nan ****", VANISHED)


@pytest.mark.parametrize(
    "text",
    [
        bare("0.9", "0.8", "0.7", *["nan"] * 12, between=""),
        bare("7.41", "7.25", "7.19", *["nan"] * 12, "7.02"),
        bare("7.41", "7.25", "nan", "7.19", *["nan"] * 12),
        bare("7.41", "7.25", "7.19", *["nan"] * 7),
        bare(*["nan"] * 15),
        bare("7.41", "7.25", "7.19", *["nan"] * 12) + "the toy goes on\n" * 9,
        bare("7.41", "7.25", "7.19", *["nan"] * 7) + bare(*["nan"] * 7, first=1),
    ],
    ids=["of classes", "a number at the end", "missing once", "a few", "never a number", "more", "anew"],
)
def test_other_bare_measures_end_nothing(watch: Watch, text: str) -> None:
    assert watch(text).verdict.state != "failed"
