"""A command of a batch script fails, the script goes on, and what it launches fails much later."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames

NO_COMMAND = "/var/spool/slurmd/job77/slurm_script: line 9: toyprobe: command not found\n"
NO_MODULE = frames("ModuleNotFoundError: No module named 'toyprobe'") + "\n"
BUILT = "".join(
    f"{rank}: the toy of this rank is built in part {part}\n" for part in range(9) for rank in range(8)
)
STOPPED = frames("RuntimeError: the toys of two ranks differ", prefix="3: ") + "\n"
LIMIT = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-03-02T12:00:01 DUE TO TIME LIMIT ***\n"


@pytest.mark.parametrize("first", [NO_COMMAND, NO_MODULE, NO_MODULE + NO_COMMAND])
def test_what_the_script_launched_is_why_the_job_ended(watch: Watch, first: str) -> None:
    done = watch(f"{first}{BUILT}{STOPPED}")
    assert done.verdict.root_line == "3: RuntimeError: the toys of two ranks differ"
    assert any("its script went on behind it" in rival.reason for rival in done.rivals)


def test_an_exception_of_a_program_that_was_launched_behind_a_missing_file_is_its_own(watch: Watch) -> None:
    no_file = "/var/spool/slurmd/job77/slurm_script: line 9: /toy/keys.sh: No such file or directory\n"
    begun = "".join(f"reads part {part} of the toy\n" for part in range(16))
    own = frames("ValueError: the toy has no such part") + "\n"
    assert watch(f"{no_file}{begun}{own}").verdict.root_line == "ValueError: the toy has no such part"
    assert watch(f"{no_file}{begun[:60]}\n{own}").verdict.root_line == no_file.strip()


@pytest.mark.parametrize("word", ["SBATCH", "PBS", "\ufeff#!/bin/bash"])
def test_an_option_or_a_first_line_that_the_shell_runs_is_not_why_a_program_failed(
    watch: Watch, word: str
) -> None:
    ends = "No such file or directory" if "/" in word else "command not found"
    stray = f"/var/spool/slurmd/job77/slurm_script: line 9: {word}: {ends}\n"
    own = frames("ValueError: the toy has no such part") + "\n"
    assert watch(f"{stray}{own}").verdict.root_line == "ValueError: the toy has no such part"


def test_a_script_goes_on_without_its_environment(watch: Watch) -> None:
    missing = "EnvironmentLocationNotFound: Not a conda environment: /toys/envs/wheels\n"
    own = frames("IndentationError: expected an indented block") + "\n"
    assert watch(f"{missing}\n{own}").verdict.root_line == "IndentationError: expected an indented block"
    assert watch(missing).verdict.root_line == missing.strip()


def test_a_step_that_found_no_program_is_not_why_a_later_one_failed(watch: Watch) -> None:
    no_program = (
        "slurmstepd: error: execve(): toyprobe: No such file or directory\n"
        "srun: error: n1: task 0: Exited with exit code 2\n"
    )
    own = frames("MemoryError: Unable to allocate 7.7 GiB for the toys") + "\n"
    assert watch(f"{no_program}{BUILT}{own}").verdict.error_type == "host_oom"
    assert watch(f"{no_program}{own}").verdict.error_type == "config"


def test_a_job_that_met_its_time_limit_had_gone_on(watch: Watch) -> None:
    done = watch(f"{NO_COMMAND}{BUILT}{LIMIT}")
    assert (done.verdict.error_type, done.decision.action) == ("slurm_failure", "stop")


def test_a_job_that_somebody_cancelled_some_lines_later_had_gone_on(watch: Watch) -> None:
    cancel = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-03-02T12:00:01 ***\n"
    done = watch(f"{NO_COMMAND}{BUILT}{cancel}")
    assert (done.verdict.error_type, done.decision.action) == ("cancelled", "hold")
    assert "its script had failed" in done.decision.reason
    assert watch(f"{BUILT}{cancel}").decision.action == "restart"
    again = watch(f"{NO_COMMAND}{BUILT}{NO_COMMAND}{cancel}")
    assert (again.verdict.error_type, again.decision.action) == ("config", "stop")
    step = cancel.replace("JOB 77", "STEP 77.0")
    assert watch(f"{NO_COMMAND}toy\ntoy\n{step}").verdict.error_type == "config"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{NO_COMMAND}{STOPPED}", id="what fails right behind it may follow from it"),
        pytest.param(f"{NO_MODULE}{STOPPED}", id="the same of a program"),
        pytest.param(
            f"0: toy\n{NO_COMMAND}srun: error: n1: task 0: Exited with exit code 127\n", id="the end"
        ),
    ],
)
def test_a_command_right_before_the_end_is_why_the_job_ended(watch: Watch, text: str) -> None:
    assert watch(text).verdict.root_line in (
        NO_COMMAND.strip(),
        "ModuleNotFoundError: No module named 'toyprobe'",
    )


def test_a_program_that_was_launched_itself_is_no_command_of_the_script(watch: Watch) -> None:
    own = frames("ModuleNotFoundError: No module named 'toyprobe'", prefix="5: ") + "\n"
    assert watch(f"{own}{BUILT}{STOPPED}").verdict.error_type == "import_error"
    unlabelled = BUILT.replace(": the toy", " the toy") + frames("RuntimeError: the toys differ") + "\n"
    assert watch(f"{NO_MODULE}{unlabelled}").verdict.error_type == "import_error"
