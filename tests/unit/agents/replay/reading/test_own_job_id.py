"""What a log and its path tell of the job that wrote it."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.reading.own_job_id import clues_of


@pytest.mark.parametrize(
    ("text", "clues"),
    [
        ("SLURM_JOB_ID=77\n", ["77"]),
        ("export SLURM_JOBID='77'\n", ["77"]),
        ('{"SLURM_JOB_ID": "77"}\n', ["77"]),
        ("slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-03-02T11:52:45 ***\n", ["77"]),
        ("slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-03-02T11:52:45 ***\n", ["77"]),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=77.0.\n", ["77"]),
        ("srun: job 77 queued and waiting for resources\n", ["77"]),
        ("job id: 77\n", ["77"]),
        ("SLURM_ARRAY_JOB_ID=77\nSLURM_ARRAY_TASK_ID=3\nSLURM_JOB_ID=80\n", ["77_3", "80"]),
        ("SLURM_JOB_ID=77\nSLURM_JOB_ID=78\n", ["78", "77"]),
        ("Job 'raysubmit_a1' submitted\n", ["raysubmit_a1"]),
        ("Submitted batch job 78\n", []),
        ("step 77 of 100, batch 77, job took 77 s\n", []),
    ],
)
def test_only_slurm_s_and_ray_s_own_words_name_a_job(text: str, clues: list[str]) -> None:
    found = list(clues_of(None, [LogFile("log", text.encode(), 0.0)]))
    assert found[0] == "log"
    assert list(dict.fromkeys(found[1:])) == clues


def test_the_caller_and_the_path_come_first() -> None:
    file = LogFile("/runs/77/slurm.out", b"SLURM_JOB_ID=78\n", 0.0)
    assert list(clues_of("mine", [file]))[:3] == ["mine", "slurm.out", "77"]
