"""A wrapper that copies lines through its own logger is known by what no logger of a job writes."""

from __future__ import annotations

import pytest

from midwatch.agents.match.copied_lines import are_copied

INFO = "2026-03-02 11:52:40,123 - INFO - "


@pytest.mark.parametrize(
    "line",
    [
        '  File "toy.py", line 3, in ride',
        'File "toy.py", line 3, in ride',
        "----> 3 toy.ride()",
        "[rank3]:[W302 11:52:40.132 toy.cpp:12] a wheel squeaks",
        "W0302 11:52:40.132000 41 toy.py:12] a wheel squeaks",
        "2026-03-02 11:52:40 WARNING a wheel squeaks",
        "WARNING:toy:a wheel squeaks",
        "srun: error: gpu-07: task 0: Exited with exit code 1",
        "kernel: NVRM: loading toys",
        "[2026-03-02T11:52:40.132] error: *** JOB 41 ON gpu-07 CANCELLED ***",
        "wandb: Syncing run toy-41",
    ],
)
def test_a_line_of_another_program_shows_that_lines_are_copied(line: str) -> None:
    assert are_copied(f"{INFO}epoch 3\n{INFO}{line}\n".encode())


@pytest.mark.parametrize(
    "text",
    [
        f"{INFO}epoch 3, loss 2.1\n{INFO}saved toy.pt\n",
        f'{INFO}the toy broke\nTraceback (most recent call last):\n  File "toy.py", line 3, in ride\n',
        f'{INFO}File "toy.txt" has 300 lines\n',
        '2026-03-02 11:52:40,123 - ERROR -   File "toy.py", line 3, in ride\n',
        f"{INFO}started at 2026-03-02 11:52:40\n",
    ],
)
def test_a_logger_of_the_job_copies_nothing(text: str) -> None:
    assert not are_copied(text.encode())
