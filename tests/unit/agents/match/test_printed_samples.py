"""Samples that a training prints hold errors of the programs that they are about; none is of the run."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

DRIVER, WORKER = "(ToyRunner pid=70) ", "(ToyWorker pid=71) "
STEPS = "".join(f"{DRIVER}step:{n} - actor/pg_loss:0.01 - timing_s/step:88.1\n" for n in range(1, 30))
CRASH = (
    "Traceback (most recent call last):",
    '  File "/toy/program.py", line 3, in main',
    "    print(7 / 0)",
    "ZeroDivisionError: division by zero",
)
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
SAMPLE = (
    "[prompt] Mend this toy. It prints:",
    *CRASH,
    f"[response] It divides by zero. {OUT_OF_MEMORY}",
    OUT_OF_MEMORY,
    "[ground_truth] 7",
    "[score] 0.0",
)


def said(speaker: str, *lines: str) -> str:
    return "".join(f"{speaker}{line}\n" for line in lines)


@pytest.mark.parametrize("speaker", [DRIVER, ""])
def test_a_sample_of_verl_is_no_failure(watch: Watch, speaker: str) -> None:
    assert watch(STEPS + said(speaker, *SAMPLE)).verdict.state == "healthy"
    assert watch(STEPS + said(speaker, *SAMPLE, *SAMPLE)).verdict.state == "healthy"
    assert watch(STEPS + said(speaker, *CRASH)).verdict.state == "failed"


def test_a_failure_behind_a_sample_counts(watch: Watch) -> None:
    assert watch(STEPS + said(DRIVER, *SAMPLE, *CRASH)).verdict.error_type == "exception"
    assert watch(STEPS + said(DRIVER, *SAMPLE, *CRASH, *SAMPLE)).verdict.error_type == "exception"


def test_a_failure_of_another_process_within_a_sample_counts(watch: Watch) -> None:
    within = said(DRIVER, *SAMPLE[:3]) + said(WORKER, OUT_OF_MEMORY) + said(DRIVER, *SAMPLE[3:])
    assert watch(STEPS + within).verdict.error_type == "oom"


def test_a_failure_that_ends_a_sample_counts(watch: Watch) -> None:
    assert watch(STEPS + said(DRIVER, "[prompt] Mend this toy.", *CRASH)).verdict.state == "failed"
    begun = said(DRIVER, "[prompt] Mend this toy.", *CRASH, *SAMPLE)
    assert watch(STEPS + begun).verdict.state == "failed"


TABLE = """\
╭────────────────── Step 7 ───────────────────╮
│ ┏━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━━━┓ │
│ ┃ Prompt         ┃ Completion    ┃ Reward ┃ │
│ ┡━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━━━┩ │
│ │ Why does it    │ RuntimeError: CUDA error: an illegal memory access was encountered │ 0.00 │ │
│ │ stop?          │ Killed.       │        │ │
│ └────────────────┴───────────────┴────────┘ │
╰─────────────────────────────────────────────╯
"""


def test_a_table_of_completions_is_no_failure(watch: Watch) -> None:
    assert watch(STEPS + TABLE).verdict.state == "healthy"


@pytest.mark.parametrize(
    ("text", "other"),
    [("Prompt  ", "Command "), ("│ ┡━", "it goes on\n│ ┡━"), ("│ │ Why does it    │ ", "│ ")],
)
def test_another_table_and_a_line_in_a_panel_count(watch: Watch, text: str, other: str) -> None:
    assert watch(STEPS + TABLE.replace(text, other)).verdict.state == "failed"
