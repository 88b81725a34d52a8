"""Tables of sacct and blocks of scontrol, as people paste them."""

from __future__ import annotations

import pytest

from midwatch.agents.schedulers.slurm.saved_rows import SavedRow
from midwatch.agents.schedulers.slurm.saved_tables import rows_of_blocks, rows_of_table

COLUMNS = """\
JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
7700123            wrap      debug       root          8 OUT_OF_ME+    0:125
7700123.bat+      batch                  root          8 OUT_OF_ME+    0:125
7700123.ext+     extern                  root          8  COMPLETED      0:0
"""
ROWS = [
    SavedRow("7700123", "OUT_OF_ME+", exit_code=0, signal=125),
    SavedRow("7700123", "OUT_OF_ME+", exit_code=0, signal=125, part="batch"),
    SavedRow("7700123", "COMPLETED", exit_code=0, part="extern"),
]
ONE = [SavedRow("77", "NODE_FAIL", exit_code=1)]


def test_cells_stand_in_the_columns_of_the_dashes() -> None:
    assert rows_of_table(COLUMNS) == ROWS


@pytest.mark.parametrize("above", ["$ sacct -j 7700123\n", "sacct: warning: toy\n\n", "[ann@toy ~]$ sacct\n"])
def test_what_stands_around_a_table_does_no_harm(above: str) -> None:
    assert rows_of_table(f"{above}{COLUMNS}[ann@toy ~]$ \n") == ROWS


@pytest.mark.parametrize(
    "text",
    [
        "JobID|State|ExitCode\n77|NODE_FAIL|1:0\n",
        "JobID|State|ExitCode|\n77|NODE_FAIL|1:0|\n",
        "JobID,State,ExitCode\n77,NODE_FAIL,1:0\n",
        "JobID;State;ExitCode\n77;NODE_FAIL;1:0\n",
        "JobID\tState\tExitCode\r\n77\tNODE_FAIL\t1:0\r\n",
        "JOBID|NAME|STATE|EXITCODE\n77|toy|NODE_FAIL|1:0\n",
        "77|toy|NODE_FAIL|1:0\n",
        "77,toy,NODE_FAIL,1:0\n",
        "77    toy   debug   8  NODE_FAIL      1:0\n",
        "JobID|JobName|State|ExitCode\n77|a|b|NODE_FAIL|1:0\n",
        "JobID   State  ExitCode\n77   NODE_FAIL   1:0\n",
    ],
)
def test_each_form_of_a_table_gives_the_same_row(text: str) -> None:
    assert rows_of_table(text) == ONE


@pytest.mark.parametrize(
    "text",
    ["77|FAILED|NODE_FAIL|1:0\n", "77|toy|FAILED|1:0|9:0\n", "77 TIMEOUT 8 FAILED 1:0\n"],
)
def test_a_row_without_a_header_that_can_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no header, and the row of 77 can be read in two ways"):
        rows_of_table(text)


@pytest.mark.parametrize(
    "text", ["", "loss 2.1\n12 steps done\n", "FAILED\n", "JobID|State\n", "3 of 4 tasks\n"]
)
def test_other_text_holds_no_row(text: str) -> None:
    assert rows_of_table(text) == []


def test_who_cancelled_stays_with_the_word_where_no_header_helps() -> None:
    assert [row.word for row in rows_of_table("77 toy CANCELLED by 1000 0:15\n")] == ["CANCELLED by 1000"]


@pytest.mark.parametrize(
    ("shown", "job", "part"),
    [
        ("77_3", "77_3", ""),
        ("77_3.batch", "77_3", "batch"),
        ("77_[4-9%2]", "77_[4-9%2]", ""),
        ("77+0", "77", ""),
        ("77+1", "77", "+1"),
        ("77+1.0", "77", "+1.0"),
        ("77+0.batch", "77", "batch"),
        ("77.ex+", "77", "extern"),
        ("77.12", "77", "12"),
        ("77_12+", "77_12+", ""),
    ],
)
def test_an_id_names_the_job_and_its_part(shown: str, job: str, part: str) -> None:
    (row,) = rows_of_table(f"JobID|State\n{shown}|FAILED\n")
    assert (row.job, row.part) == (job, part)


def test_an_id_that_is_cut_below_its_job_is_a_step_of_it() -> None:
    rows = rows_of_table("JobID|State\n77_12|FAILED\n77_12+|OUT_OF_MEMORY\n")
    assert [(row.job, row.part) for row in rows] == [("77_12", ""), ("77_12", "step")]


def test_rows_without_ids_count_only_if_they_are_alike() -> None:
    assert len(rows_of_table("State|ExitCode\nFAILED|1:0\nFAILED|1:0\n")) == 1
    with pytest.raises(ValueError, match="no column JobID"):
        rows_of_table("State|ExitCode\nFAILED|1:0\nNODE_FAIL|1:0\n")


def test_an_id_of_slurm_s_own_stands_beside_that_of_a_task() -> None:
    (row,) = rows_of_table("JobID|JobIDRaw|State\n77_1|79|FAILED\n")
    assert (row.job, row.raw) == ("77_1", "79")


def test_each_block_of_scontrol_is_a_row() -> None:
    text = (
        "JobId=77 JobName=toy\n   JobState=NODE_FAIL Reason=NodeDown Dependency=(null)\n"
        "   Requeue=1 Restarts=2 BatchFlag=1 ExitCode=1:0\n   Command=/toy.sh JobState=COMPLETED\n\n"
        "JobId=79 ArrayJobId=78 ArrayTaskId=3 JobName=toy JobState=PENDING "
        "Reason=launch failed requeued held Dependency=(null) ExitCode=0:0\n"
        "JobId=81 HetJobId=80 HetJobOffset=1 JobName=toy\n   JobState=FAILED Reason=None\n"
    )
    assert rows_of_blocks(text) == [
        SavedRow("77", "NODE_FAIL", "NodeDown", 1, raw="77", restarts=2),
        SavedRow("78_3", "PENDING", "launch failed requeued held", 0, raw="79"),
        SavedRow("80", "FAILED", "None", part="+1", raw="81"),
    ]
