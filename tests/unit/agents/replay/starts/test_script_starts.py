"""A script that ended of an exception twice was started twice, unless the file speaks of ranks or workers."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.starts.script_starts import behind_ended_scripts
from unit.agents.conftest import Watch


def ended(line: int, words: str, script: str = "train.py") -> str:
    return (
        "Traceback (most recent call last):\n"
        f'  File "{script}", line {line}, in <module>\n'
        "    main()\n"
        f"{words}\n"
    )


NO_MODULE = ended(3, "ModuleNotFoundError: No module named 'toylib'")
SIZES = ended(90, "RuntimeError: The size of tensor a (8) must match the size of tensor b (6)")
WORK = "arguments of the toy: none\nreads the toy data\nbuilds the toy model\n"


def places(text: str) -> list[int]:
    return [number for _, number in behind_ended_scripts(LogFile("toy.log", text.encode(), 0.0))]


def test_the_failure_of_the_second_start_is_the_root() -> None:
    assert places(NO_MODULE + WORK + SIZES) == [5]
    assert places(WORK + NO_MODULE + WORK + SIZES + WORK + SIZES) == [8, 15]


def test_a_script_that_hydra_ends_had_begun_anew_behind_its_first_end(watch: Watch) -> None:
    of_hydra = "Error executing job with overrides: ['toys=7']\n" + SIZES.replace("<module>", "run")
    assert places(NO_MODULE + WORK + of_hydra) == [5]
    assert watch(NO_MODULE + WORK + of_hydra).verdict.root_line == SIZES.splitlines()[-1]
    assert places(NO_MODULE + WORK + SIZES.replace("<module>", "run")) == []


def test_a_warning_that_python_prints_again_parts_two_starts_that_print_little_else() -> None:
    warns = "/toy/lib/build.py:77: UserWarning: no cache of the compiler was found\n"
    assert places(warns + NO_MODULE + warns + SIZES) == [6]
    assert places(NO_MODULE + warns + SIZES) == []


def test_the_first_line_of_a_file_and_another_exception_part_two_starts() -> None:
    seed = "the seed of the toy: 7\n"
    assert places(seed + NO_MODULE + seed + SIZES) == [6]
    assert places(seed + NO_MODULE + seed + NO_MODULE) == []
    assert places(seed + NO_MODULE + "another seed: 7\n" + SIZES) == []
    assert places(NO_MODULE + SIZES) == []


def test_behind_a_process_that_never_began_its_script_another_one_writes(watch: Watch) -> None:
    no_file = "python: can't open file 'trian.py': [Errno 2] No such file or directory\n"
    assert places(no_file + WORK + SIZES) == [2]
    assert places(no_file + SIZES) == []
    assert places("world_size 8\n" + no_file + WORK + SIZES) == []
    launcher = SIZES.replace("train.py", "/toy/bin/accelerate")
    assert places(no_file + WORK + launcher) == []
    assert watch(no_file + WORK + SIZES).verdict.error_type == "torch"


def test_a_chain_of_exceptions_ends_a_script_once() -> None:
    chain = NO_MODULE + "\nDuring handling of the above exception, another exception occurred:\n\n" + SIZES
    assert places(chain) == []
    assert places(chain + WORK + SIZES) == [12]


def test_a_signal_of_which_a_shell_tells_ends_a_script(watch: Watch) -> None:
    told = "run.sh: line 40: 4188 Terminated              python toys/train.py --toys 7 --local_rank=-1\n"
    text = WORK + "process rank: -1\n" + told + WORK + SIZES
    assert places(text) == [6]
    assert watch(text).verdict.error_type == "torch"
    assert places(text.replace("toys/train.py", "evaluate.py")) == []
    assert places(text.replace("rank: -1", "rank: 7")) == []


def test_a_script_that_refused_its_command_line_was_started_again() -> None:
    refused = "usage: train.py [-h] [--toys N]\ntrain.py: error: argument --toys: expected one argument\n"
    assert places(refused + WORK + SIZES) == [3]
    assert places(refused.replace("train.py", "prepare.py") + WORK + SIZES) == []


def test_behind_long_work_another_script_fails_of_its_own() -> None:
    rounds = "".join(f"round {n} of the toys ends with a score of 0.{n}\n" for n in range(80))
    other = SIZES.replace("train.py", "evaluate.py")
    assert places(NO_MODULE + rounds + other) == [5]
    assert places(NO_MODULE + rounds[:400] + other) == []


@pytest.mark.parametrize(
    "text",
    [
        NO_MODULE + WORK,
        NO_MODULE + SIZES,
        NO_MODULE + WORK + SIZES.replace("train.py", "prepare.py"),
        "world_size 8\n" + NO_MODULE + WORK + SIZES,
        NO_MODULE + WORK + "torchrun: the toy has ended\n" + SIZES,
        NO_MODULE + WORK + "  the answer of the model:\n" + SIZES.replace("Traceback", "  Traceback"),
    ],
)
def test_other_files_hold_one_start(text: str) -> None:
    assert places(text) == []


def test_a_box_of_rich_ends_a_script_too_and_not_its_launcher() -> None:
    box = (
        "╭──── Traceback (most recent call last) ────╮\n"
        "│ train.py:66 in <module>                   │\n"
        "╰───────────────────────────────────────────╯\n"
        "ValueError: no toys\n"
    )
    assert places(box + WORK + SIZES) == [5]
    assert places(box + WORK + SIZES.replace("train.py", "/toy/bin/accelerate")) == []
    assert places(box.replace("<module>", "step") + WORK + SIZES) == []


def test_the_verdict_is_that_of_the_last_start(watch: Watch) -> None:
    done = watch(NO_MODULE + WORK + SIZES)
    assert done.verdict.error_type == "torch"
    assert [(each.last, each.verdict.error_type) for each in done.earlier] == [(4, "import_error")]
