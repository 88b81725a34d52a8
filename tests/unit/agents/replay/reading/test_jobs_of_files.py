"""Names of log files: which show several jobs, and which look so and are parts of one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.replay.reading.jobs_of_files import jobs_of
from midwatch.agents.replay.reading.log_files import LogFile


def jobs(*names: str) -> dict[str, list[str]]:
    files = [LogFile(f"logs/{name}", b"", 0.0) for name in names]
    return {
        job.name: [file.path.removeprefix("logs/") for file in job.files] for job in jobs_of("logs", files)
    }


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("8812.err", "8812.out", "8813.out"), {"8812": ["8812.err", "8812.out"], "8813": ["8813.out"]}),
        (
            ("toy/logs/8812.err", "toy/logs/8812.out", "toy/logs/8813.out"),
            {"8812": ["toy/logs/8812.err", "toy/logs/8812.out"], "8813": ["toy/logs/8813.out"]},
        ),
        (
            ("toy/job_7/a.log", "toy/job_8/a.log"),
            {"job_7": ["toy/job_7/a.log"], "job_8": ["toy/job_8/a.log"]},
        ),
        (("toy/rank0/a.log", "toy/rank1/a.log"), {"logs": ["toy/rank0/a.log", "toy/rank1/a.log"]}),
        (("8812_0.out", "8812_1.out"), {"8812_0": ["8812_0.out"], "8812_1": ["8812_1.out"]}),
        (("8812.log", "8813.log.gz"), {"8812": ["8812.log"], "8813": ["8813.log.gz"]}),
        (
            ("8812_0_log.out", "8812_1_log.out", "8813_0_log.err", "8813_0_log.out"),
            {"8812": ["8812_0_log.out", "8812_1_log.out"], "8813": ["8813_0_log.err", "8813_0_log.out"]},
        ),
        (
            ("submitit_8812_3_0_log.out", "8812_4_0_log.out"),
            {"8812_4": ["8812_4_0_log.out"], "submitit-8812_3": ["submitit_8812_3_0_log.out"]},
        ),
        (
            ("job_8812_node-0.log", "job_8812_node-1.log", "job_8813_node-0.log"),
            {"job-8812": ["job_8812_node-0.log", "job_8812_node-1.log"], "job-8813": ["job_8813_node-0.log"]},
        ),
        (
            ("slurm-8812-gpu01.out", "slurm-8812-gpu02.out", "slurm-8813-gpu01.out"),
            {
                "slurm-8812": ["slurm-8812-gpu01.out", "slurm-8812-gpu02.out"],
                "slurm-8813": ["slurm-8813-gpu01.out"],
            },
        ),
        (
            ("train_8812_log.err", "train_8812_log.out", "train_8813_log.out"),
            {
                "train-8812": ["train_8812_log.err", "train_8812_log.out"],
                "train-8813": ["train_8813_log.out"],
            },
        ),
        (
            ("err-8812.txt", "out-8812.txt", "out-8813.txt"),
            {"err-8812": ["err-8812.txt", "out-8812.txt"], "out-8813": ["out-8813.txt"]},
        ),
        (
            ("slurm-4711001.out", "train-4711001.log", "train-4711002.log"),
            {
                "slurm-4711001": ["slurm-4711001.out", "train-4711001.log"],
                "train-4711002": ["train-4711002.log"],
            },
        ),
        (
            ("log_20260302_115000.txt", "log_20260303_115000.txt"),
            {
                "log_20260302-115000": ["log_20260302_115000.txt"],
                "log_20260303-115000": ["log_20260303_115000.txt"],
            },
        ),
        (
            ("toy-job2024-4711001.out", "toy-job2024-4711002.out"),
            {
                "toy-job2024-4711001": ["toy-job2024-4711001.out"],
                "toy-job2024-4711002": ["toy-job2024-4711002.out"],
            },
        ),
        (
            ("big-seed-1234.log", "small-seed-1234.log"),
            {"big-seed-1234": ["big-seed-1234.log"], "small-seed-1234": ["small-seed-1234.log"]},
        ),
        (
            ("slurm-8812_0.out", "slurm-8812_1.out"),
            {"slurm-8812_0": ["slurm-8812_0.out"], "slurm-8812_1": ["slurm-8812_1.out"]},
        ),
        (
            ("4711001.toy.err", "4711001.toy.out", "4711002.toy.out"),
            {"toy-4711001": ["4711001.toy.err", "4711001.toy.out"], "toy-4711002": ["4711002.toy.out"]},
        ),
        (
            ("8812_1.toy.out", "8812_2.toy.out"),
            {"toy-8812_1": ["8812_1.toy.out"], "toy-8812_2": ["8812_2.toy.out"]},
        ),
        (
            ("4711001_toy-7b.log", "4711002_blue.log.gz"),
            {"blue-4711002": ["4711002_blue.log.gz"], "toy-7b-4711001": ["4711001_toy-7b.log"]},
        ),
        (
            ("4711001-toy.err", "4711001.out", "4711002-toy.out"),
            {"toy-4711001": ["4711001-toy.err", "4711001.out"], "toy-4711002": ["4711002-toy.out"]},
        ),
        (
            ("8812.out", "8813.out", "notes.txt"),
            {"8812": ["8812.out"], "8813": ["8813.out"], "notes.txt": ["notes.txt"]},
        ),
    ],
)
def test_files_of_one_id_are_one_job_and_other_ids_are_others(
    names: tuple[str, ...], expected: dict[str, list[str]]
) -> None:
    assert jobs(*names) == expected


@pytest.mark.parametrize(
    "names",
    [
        ("0.log", "1.log", "2.log"),
        ("0000.log", "0001.log", "0511.log"),
        ("999.log", "1000.log", "1001.log"),
        ("1000.log", "2000.log", "10000.log"),
        ("1000.log", "2000.log", "3000.log"),
        ("2024.log", "2025.log"),
        ("20260302.log", "20260303.log"),
        ("1709380800.log", "1709380801.log"),
        ("rank_0.log", "rank_1.log"),
        ("rank_1000.log", "rank_1001.log"),
        ("node3.out", "node4.out"),
        ("worker-0.log", "worker-1.log"),
        ("job_8812_rank-1000.log", "job_8812_rank-1001.log"),
        ("8812.out", "8812.err"),
        ("8812_0_log.out", "8812_0_log.err"),
        ("8812_0_log.out", "8812_1_log.out"),
        ("job_8812_rank-0.log", "job_8812_rank-1.log"),
        ("slurm-8812-0.out", "slurm-8812-1.out"),
        ("job-2026-03-02.log", "job-2025-03-03.log"),
        ("err-8812.txt", "out-8812.txt"),
        ("4711001.toy.err", "4711001.toy.out"),
        ("4711001.n1.out", "4711001.n2.out"),
        ("31234.worker.log", "31235.worker.log"),
        ("0.toy.log", "1.toy.log"),
        ("1000.toy.log", "2000.toy.log"),
        ("999.toy.log", "1000.toy.log"),
        ("2024.toy.log", "2025.toy.log"),
        ("20260302.toy.log", "20260303.toy.log"),
        ("4711001.toy", "4711002.toy"),
        ("jobs.log", "slurm.log"),
        ("0_0.log", "0_1.log"),
    ],
)
def test_look_alikes_are_one_job(names: tuple[str, ...]) -> None:
    assert jobs(*names) == {"logs": list(names)}


@given(st.integers(1, 1300), st.integers(0, 6), st.sampled_from([".log", ".out", ".err", ".log.gz"]))
def test_files_numbered_by_rank_are_never_several_jobs(ranks: int, width: int, suffix: str) -> None:
    assert list(jobs(*(f"{rank:0{width}}{suffix}" for rank in range(ranks)))) == ["logs"]


@given(st.sets(st.integers(3_000_001, 9_999_999).filter(lambda number: number % 100), min_size=2, max_size=9))
def test_numbers_as_long_as_ids_are_jobs_each_with_both_its_files(numbers: set[int]) -> None:
    names = [f"{number}.{end}" for number in sorted(numbers) for end in ("err", "out")]
    assert jobs(*names) == {str(n): [f"{n}.err", f"{n}.out"] for n in sorted(numbers)}
