"""Blocks in which a library or a launcher prints what went wrong: which of their lines is the cause."""

from __future__ import annotations

from itertools import pairwise

import pytest

from midwatch.agents.detect.diagnosis.root_line import root_of
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.replay.reading.log_files import LogFile, chunks
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.streams.records import Hit
from unit.agents.conftest import Watch

STACK = """HDF5-DIAG: Error detected in HDF5 (1.14.0) thread 0:
  #000: H5F.c line 604 in H5Fopen(): unable to open file
    major: File accessibility
    minor: Unable to open file
  #001: H5FD.c line 993 in H5FD_open(): open failed
    major: Virtual File Layer
    minor: Unable to initialize object
  #002: H5FDsec2.c line 339 in H5FD_sec2_open(): unable to open file: name = 'toy.h5', errno = 2
    major: File accessibility
    minor: Unable to open file
"""
INNERMOST = STACK.split("\n")[7].strip()
STEPS = "".join(f"step: {n}  loss:  2.1  grad_norm:  0.3\n" for n in range(1, 5))


def test_the_innermost_entry_of_an_error_stack_says_why(watch: Watch) -> None:
    done = watch(f"loading the toy\n{STACK}toy.lua:12: no such thing\n")
    assert (done.verdict.error_type, done.verdict.root_line.strip()) == ("exception", INNERMOST)
    assert done.decision.action == "stop"


def test_an_error_stack_of_a_run_that_goes_on_was_a_probe(watch: Watch) -> None:
    assert watch(f"{STACK}{STEPS}").verdict.state != "failed"


def test_a_stack_that_chunks_cut_is_read_to_its_end() -> None:
    rules = watched_rules(("default",), scan=False).rules
    hits: list[Hit] = []
    lines = STACK.splitlines(keepends=True)
    for index, line in enumerate(lines):
        file = LogFile("log", "".join(lines[: index + 1]).encode(), 0.0)
        whole = [found for chunk in chunks("job", file, 0) if (found := match(chunk, rules, "b", 0))]
        hits += [hit for found in whole for hit in found.hits if hit.line.text == line.rstrip("\n")]
    assert [int(one.captures["depth"]) < int(two.captures["depth"]) for one, two in pairwise(hits)] == [
        True
    ] * 2
    root = root_of(hits)
    assert root is not None
    assert root.line.text.strip() == INNERMOST


def test_an_entry_that_a_rule_knows_is_of_its_kind(watch: Watch) -> None:
    locked = STACK.replace(
        "unable to open file: name = 'toy.h5', errno = 2", "unable to lock file, errno = 11"
    )
    assert watch(f"loading the toy\n{locked}").verdict.error_type == "storage"
    cut = STACK.replace("unable to open file: name = 'toy.h5', errno = 2", "truncated file: eof = 96")
    assert watch(f"loading the toy\n{cut}").verdict.error_type == "data"


def test_what_pytables_prints_of_hdf5_is_read_to_its_last_reason(watch: Watch) -> None:
    log = """Traceback (most recent call last):
  File "train.py", line 9, in <module>
    toy.open()
tables.exceptions.HDF5ExtError: HDF5 error back trace

  File "H5F.c", line 509, in H5Fopen
    unable to open file
  File "H5FDsec2.c", line 959, in H5FD_sec2_lock
    unable to lock file, errno = 11, error message = 'Resource temporarily unavailable'

End of HDF5 error back trace
"""
    verdict = watch(log).verdict
    assert verdict.error_type == "storage"
    assert verdict.root_line.strip().startswith("unable to lock file")


PYXIS = """slurmstepd: error: pyxis: container start failed with error code: 1
slurmstepd: error: pyxis: printing enroot log file:
slurmstepd: error: pyxis:     {}
slurmstepd: error: pyxis:     [ERROR] /etc/enroot/hooks.d/98-toy.sh exited with return code 1
slurmstepd: error: pyxis: couldn't start container
slurmstepd: error: spank: required plugin toy_pyxis.so: task_init() failed with rc=-7
srun: error: n4: task 3: Exited with exit code 1
"""


@pytest.mark.parametrize(
    "inner",
    [
        "nvidia-container-cli: container error: lookup failed: /proc/77/toy: permission denied",
        "enroot-switchroot: failed to execute: /bin/toy: No such file or directory",
        "/etc/enroot/hooks.d/10-toy.sh: the toy is not there",
    ],
)
def test_the_line_that_pyxis_quotes_is_the_cause_not_its_heading(watch: Watch, inner: str) -> None:
    verdict = watch(PYXIS.format(inner)).verdict
    assert (verdict.error_type, verdict.root_line_number) == ("slurm_failure", 3)


def test_a_heading_of_pyxis_without_its_block_is_all_there_is(watch: Watch) -> None:
    done = watch("slurmstepd: error: pyxis: container start failed with error code: 1\n")
    assert (done.verdict.error_type, done.decision.action) == ("slurm_failure", "stop")


@pytest.mark.parametrize(
    ("line", "error_type"),
    [
        ("Process finished with exit code -1073741819 (0xC0000005)", "native_crash"),
        ("Process finished with exit code -1073741795 (0xC000001D)", "native_crash"),
        (
            "ERROR:toy:failed (exitcode: 3221225477) local_rank: 0 (pid: 88) of binary: python.exe",
            "native_crash",
        ),
        ("worker exited with code 3221225781", "import_error"),
        ("Process finished with exit code -1073741510 (0xC000013A)", "user_interrupt"),
    ],
)
def test_windows_says_by_a_number_how_a_process_ended(watch: Watch, line: str, error_type: str) -> None:
    done = watch(f"loading the toy\n{line}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == (error_type, line)
    assert done.decision.action in ("stop", "hold")


def test_a_big_number_is_no_exit_code(watch: Watch) -> None:
    assert watch(f"wrote 3221225477 bytes, status of the upload: ok\n{STEPS}").verdict.state != "failed"


@pytest.mark.parametrize(
    "row",
    [
        "│ train_toy_8e6b3_00002      1*   /toy/results/train_toy_8e6b3_00002/error.txt │",
        " - PPO_toy_0:\tERROR, 1 failures: /toy/results/PPO_toy_0/error_toy.txt",
    ],
)
def test_the_table_of_trials_that_failed_is_a_failure_to_be_looked_up(watch: Watch, row: str) -> None:
    done = watch(f"== Status ==\n{row}\n")
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", row)
    assert done.decision.action == "hold"


def test_a_trial_of_which_the_reason_is_known_is_judged_by_it(watch: Watch) -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB."
    row = "│ train_toy_8e6b3_00002      1*   /toy/results/train_toy_8e6b3_00002/error.txt │"
    assert watch(f"{oom}\n{row}\n").verdict.root_line == oom
