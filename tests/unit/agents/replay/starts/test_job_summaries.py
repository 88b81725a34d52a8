"""Jobs of LSF that share a file: the last one counts."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.starts.job_summaries import behind_job_summaries
from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames

RAISED = frames("KeyError: 'wheels'") + "\n"
WORK = "reads the toy data\nbuilds the toy\npaints the toy\n"


def summary(job: int, end: str) -> str:
    return (
        "\n------------------------------------------------------------\n"
        f"Sender: LSF System <lsfadmin@n4>\nSubject: Job {job}: <toy> in cluster <toys>\n\n"
        "Job <toy> was submitted from host <login2> by user <ada> in cluster <toys>\n"
        "Job was executed on host(s) <n4>, in queue <toys>, as user <ada> in cluster <toys>\n"
        "</home/ada> was used as the home directory.\n</home/ada/toy> was used as the working directory.\n\n"
        f"{end}\n\nThe output (if any) is above this job summary.\n\n"
        "PS:\n\nRead file <toy.err> for stderr output of this job.\n"
    ).replace("PS:\n\nRead", "PS: Read")


FAILED = summary(77, "Exited with exit code 1.")
DONE = summary(78, "Successfully completed.")


def places(text: str) -> list[int]:
    return [number for _, number in behind_job_summaries(LogFile("toy.log", text.encode(), 0.0))]


def test_the_last_job_of_a_file_counts(watch: Watch) -> None:
    done = watch(RAISED + FAILED + WORK + DONE)
    assert done.verdict.state != "failed"
    assert [each.verdict.root_line for each in done.earlier] == ["KeyError: 'wheels'"]
    assert watch(WORK + DONE + RAISED + FAILED).verdict.root_line == "KeyError: 'wheels'"


def test_a_job_that_ends_like_the_one_before_keeps_its_summary(watch: Watch) -> None:
    script = 'Traceback (most recent call last):\n  File "toy.py", line 3, in <module>\n    wheels()\n'
    one, other = f"{script}KeyError: 'wheels'\n", f"{script}KeyError: 'axles'\n"
    done = watch(one + FAILED + WORK + other + FAILED)
    assert done.verdict.root_line == "KeyError: 'axles'"
    assert [each.verdict.root_line for each in done.earlier] == ["KeyError: 'wheels'"]


def test_a_job_begins_right_behind_the_summary_of_the_one_before() -> None:
    first = RAISED + FAILED
    assert places(first + WORK + DONE) == [first.count("\n", 0, first.index("PS:"))]


TIMES = "\nreal\t3m7.118s\nuser\t2m1.077s\nsys\t0m9.410s\n"


@pytest.mark.parametrize(
    "text", [RAISED + FAILED, RAISED + FAILED + "\n\nthe end\n", RAISED + FAILED + TIMES, WORK, ""]
)
def test_nothing_begins_where_no_other_job_writes(text: str) -> None:
    assert places(text) == []


def test_of_very_many_jobs_the_last_one_counts_too(watch: Watch) -> None:
    jobs = "".join(RAISED + summary(job, "Exited with exit code 1.") for job in range(70))
    done = watch(jobs + WORK + DONE)
    assert done.verdict.state != "failed"
    assert 2 < len(done.earlier) < 70
